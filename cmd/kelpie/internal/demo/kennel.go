package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// kennel owns every process that the demo starts, and the folder of their
// files. close ends them all; when this process dies first, a shell that waits
// for the end of a pipe does it instead.
type kennel struct {
	dir      string
	watchdog *exec.Cmd
	pipe     *os.File // its write end; children hold it only until they have entered themselves

	mu       sync.Mutex
	children []*child
}

// watchScript reads "in PID" and "out PID" until the pipe ends. Then it kills the
// process groups that are left and removes the folder, which a dying process may
// still write to.
const watchScript = `trap '' HUP INT QUIT TERM PIPE
pids=
while read -r verb pid; do
	rest=
	for p in $pids; do [ "$p" = "$pid" ] || rest="$rest $p"; done
	pids=$rest
	[ "$verb" != in ] || pids="$pids $pid"
done
PATH=$PATH:/usr/bin:/bin
for p in $pids; do kill -9 "-$p"; done
for try in 1 2 3; do
	[ -d "$1" ] || exit 0
	rm -rf -- "$1" || sleep 1
done`

// enterScript enters the process with the watchdog and then becomes the program.
// Until it has, it holds the pipe, so the watchdog waits for it.
const enterScript = `echo "in $$" >&3 && exec 3>&- && exec "$@"`

// openKennel makes the folder and starts the watchdog.
func openKennel() (*kennel, error) {
	dir, err := os.MkdirTemp("", "kelpie-demo-")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer r.Close()
	k := &kennel{dir: dir, pipe: w, watchdog: exec.Command("/bin/sh", "-c", watchScript, "kelpie-demo-watchdog", dir)}
	k.watchdog.Stdin = r
	k.watchdog.Dir = "/"
	k.watchdog.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's signals are not for it
	if err := k.watchdog.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("watchdog: %w", err), w.Close(), os.RemoveAll(dir))
	}
	return k, nil
}

// child is a process of the demo.
type child struct {
	name  string
	log   string // path of what it printed
	cmd   *exec.Cmd
	ended chan struct{} // closed once it is gone; then err is set
	err   error
}

// start runs a program in its own process group, so that Ctrl-C is the demo's
// alone, with nothing of KELPIE_* in its environment. It prints into
// <name>.log in the folder.
func (k *kennel) start(name, program string, args ...string) (*child, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := &child{name: name, log: filepath.Join(k.dir, name+".log"), ended: make(chan struct{})}
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	c.cmd = exec.Command("/bin/sh", append([]string{"-c", enterScript, name, program}, args...)...)
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.Dir = k.dir
	c.cmd.Env = cleanEnv(os.Environ())
	c.cmd.ExtraFiles = []*os.File{k.pipe}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	k.children = append(k.children, c)
	go func() { // ends with the process, at the latest in close
		defer close(c.ended)
		c.err = c.cmd.Wait()
		fmt.Fprintf(k.pipe, "out %d\n", c.cmd.Process.Pid) // a watchdog that is gone does not need it
	}()
	return c, nil
}

// kill ends the process as kill -9 does and waits until it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // gone already is as good
	<-c.ended
}

// lastWords returns the end of what it printed.
func (c *child) lastWords(lines int) string {
	f, err := os.Open(c.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const most = 32 << 10
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-most), io.SeekStart) // from the start is fine too
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// testimony is the end of every log, for a demo that failed.
func (k *kennel) testimony() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var b strings.Builder
	for _, c := range k.children {
		fmt.Fprintf(&b, "--- %s, last lines of its log\n%s\n", c.name, c.lastWords(12))
	}
	return b.String()
}

// close kills all that runs, waits for it, removes the folder and lets the
// watchdog go.
func (k *kennel) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.children {
		_ = c.cmd.Process.Kill() // all at once; gone already is as good
	}
	for _, c := range k.children {
		<-c.ended
	}
	return errors.Join(os.RemoveAll(k.dir), k.pipe.Close(), k.watchdog.Wait())
}

// cleanEnv drops the settings of other kelpies.
func cleanEnv(env []string) []string {
	var clean []string
	for _, e := range env {
		if !strings.HasPrefix(e, "KELPIE_") {
			clean = append(clean, e)
		}
	}
	return clean
}
