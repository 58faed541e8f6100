package process

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Options of a Kennel. The zero value suits tests.
type Options struct {
	// Name begins the names of the watchdog and of the temporary folder; default
	// "kelpie-kennel".
	Name string
	// Dir is the folder of the logs, made if it is missing, and kept. Default: a
	// temporary one, which Close removes.
	Dir string
}

// Kennel owns processes, their logs, and what else must be undone. Its methods
// are safe for concurrent use.
type Kennel struct {
	dir      string
	watchdog *exec.Cmd
	said     bytes.Buffer // by the watchdog; read after it has ended

	mu       sync.Mutex
	pipe     *os.File // to the watchdog; nil once the kennel is closed
	children []*Child
	promises int // given so far
}

var errClosed = errors.New("the kennel is closed")

// watchScript reads what there is until the pipe ends. Then it kills the process
// groups that are left, keeps the promises, the latest first, and removes the
// folder $1 if there is one to remove; a dying process may still write to it.
const watchScript = `trap '' HUP INT QUIT TERM PIPE
pids= promises= failed=0
without() {
	rest=
	for x in $2; do [ "$x" = "$1" ] || rest="$rest $x"; done
}
while read -r verb key words; do
	case $verb in
	in) pids="$pids $key" ;;
	out) without "$key" "$pids"; pids=$rest ;;
	promise) eval "promise_$key=\$words"; promises="$key $promises" ;;
	kept) without "$key" "$promises"; promises=$rest ;;
	esac
done
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
for p in $pids; do kill -9 "-$p"; done
for n in $promises; do
	eval "words=\$promise_$n"
	eval "$words" </dev/null || { sleep 1; eval "$words" </dev/null; } || failed=1
done
for try in 1 2 3; do
	[ -n "$1" ] && [ -d "$1" ] || break
	rm -rf -- "$1" || sleep 1
done
exit $failed`

// Open makes the folder and starts the watchdog. The caller must call Close.
func Open(o Options) (_ *Kennel, err error) {
	o.Name = cmp.Or(o.Name, "kelpie-kennel")
	k := &Kennel{}
	remove := ""
	if o.Dir == "" {
		if k.dir, err = os.MkdirTemp("", o.Name+"-"); err != nil {
			return nil, fmt.Errorf("temporary folder: %w", err)
		}
		remove = k.dir
	} else if k.dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	} else if err := os.MkdirAll(k.dir, 0o755); err != nil {
		return nil, err
	}
	if err := k.watch(o.Name+"-watchdog", remove); err != nil {
		err = fmt.Errorf("watchdog: %w", err)
		if remove != "" {
			err = errors.Join(err, os.RemoveAll(remove))
		}
		return nil, err
	}
	return k, nil
}

// watch starts the watchdog.
func (k *Kennel) watch(name, remove string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	k.watchdog = exec.Command("/bin/sh", "-c", watchScript, name, remove)
	k.watchdog.Stdin, k.watchdog.Stderr = r, &k.said
	k.watchdog.Dir = "/"
	k.watchdog.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's signals are not for it
	if err := k.watchdog.Start(); err != nil {
		return errors.Join(err, w.Close())
	}
	k.pipe = w
	return nil
}

// Dir is the folder of the logs.
func (k *Kennel) Dir() string { return k.dir }

// tell hands the watchdog a line. The caller holds the lock.
func (k *Kennel) tell(format string, a ...any) error {
	if k.pipe == nil {
		return errClosed
	}
	if _, err := fmt.Fprintf(k.pipe, format+"\n", a...); err != nil {
		return fmt.Errorf("the watchdog is gone: %w", err)
	}
	return nil
}

// Promise has a command run when the kennel closes, or when this process dies
// first: for what the death of a process does not take away. The latest promise
// is kept first, after all processes are gone. The command is repeated once if
// it fails, so it must succeed where nothing is left to do. Keep runs it now, and
// takes it off the list if it succeeds.
func (k *Kennel) Promise(program string, args ...string) (keep func() error, err error) {
	words := make([]string, 0, 1+len(args))
	for _, w := range append([]string{program}, args...) {
		if strings.ContainsAny(w, "\n\x00") {
			return nil, fmt.Errorf("promise %q: a line break has no place in it", w)
		}
		words = append(words, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.promises++
	n := k.promises
	if err := k.tell("promise %d %s", n, strings.Join(words, " ")); err != nil {
		return nil, err
	}
	return func() error {
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(append([]string{program}, args...), " "), err, bytes.TrimSpace(out))
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.tell("kept %d", n)
	}, nil
}

// Testimony is the end of every log, for a run that failed.
func (k *Kennel) Testimony() string {
	k.mu.Lock()
	children := slices.Clone(k.children)
	k.mu.Unlock()
	var b strings.Builder
	for _, c := range children {
		fmt.Fprintf(&b, "--- %s, last lines of its log\n%s\n", c.name, c.LastWords(12))
	}
	return b.String()
}

// Close kills all that runs, waits for it, keeps the promises and removes the
// folder if it is a temporary one. A second call does nothing.
func (k *Kennel) Close() error {
	k.mu.Lock()
	pipe, children := k.pipe, k.children
	k.pipe = nil // nothing starts any more
	k.mu.Unlock()
	if pipe == nil {
		return nil
	}
	for _, c := range children {
		c.signal(syscall.SIGKILL) // all at once
	}
	for _, c := range children {
		<-c.ended
	}
	err := pipe.Close()
	if ended := k.watchdog.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("the watchdog could not undo all: %w: %s", ended, strings.TrimSpace(k.said.String())))
	}
	return err
}
