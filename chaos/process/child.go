package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Command says what to run.
type Command struct {
	Name    string // of the process and of its log, <Name>.log in the kennel's folder
	Program string // path, or a name to be found on the PATH
	Args    []string
	Env     []string // added to this process's environment, of which nothing that begins with KELPIE_ is passed on
	Dir     string   // where it runs; default the kennel's folder
}

// Child is a process of a Kennel. Its methods are safe for concurrent use; those
// that send a signal do nothing once it has ended.
type Child struct {
	name  string
	log   string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // set before ended is closed
}

// enterScript waits until the watchdog knows of the process, and then becomes
// the program.
const enterScript = `read -r _ <&3 && exec 3<&- && exec "$@"`

// Start runs a program in a process group of its own, so that Ctrl-C is the
// owner's alone. What it prints is appended to its log.
func (k *Kennel) Start(c Command) (*Child, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pipe == nil {
		return nil, fmt.Errorf("%s: %w", c.Name, errClosed)
	}
	child := &Child{name: c.Name, log: filepath.Join(k.dir, c.Name+".log"), ended: make(chan struct{})}
	out, err := os.OpenFile(child.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	r, leash, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer leash.Close()
	child.cmd = exec.Command("/bin/sh", append([]string{"-c", enterScript, c.Name, c.Program}, c.Args...)...)
	child.cmd.Stdout, child.cmd.Stderr = out, out
	if child.cmd.Dir = c.Dir; c.Dir == "" {
		child.cmd.Dir = k.dir
	}
	child.cmd.Env = append(cleanEnv(os.Environ()), c.Env...)
	child.cmd.ExtraFiles = []*os.File{r}
	child.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := child.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	err = k.tell("in %d", child.PID())
	if err == nil {
		_, err = leash.WriteString("\n")
	}
	if err != nil { // never released: it reads the end of the leash and leaves
		leash.Close()
		_ = child.cmd.Wait()
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	k.keep(child)
	return child, nil
}

// keep adds a child, in the place of an earlier one of its name, and waits for
// its end. The caller holds the lock.
func (k *Kennel) keep(c *Child) {
	k.children = slices.DeleteFunc(k.children, func(old *Child) bool { return old.name == c.name && old.hasEnded() })
	k.children = append(k.children, c)
	pipe := k.pipe
	go func() { // ends with the process, at the latest in Close, which closes the pipe after that
		defer close(c.ended)
		c.err = c.cmd.Wait()
		_ = syscall.Kill(-c.PID(), syscall.SIGKILL) // what it left behind; mostly nothing
		fmt.Fprintf(pipe, "out %d\n", c.PID())      // a watchdog that is gone does not need it
	}()
}

// Name is the Command's.
func (c *Child) Name() string { return c.name }

// Log is the path of what it printed.
func (c *Child) Log() string { return c.log }

// PID is its process id, and that of its group.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Ended is closed once the process is gone.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Err waits for the end and returns how it was: nil for exit status 0, else an
// *exec.ExitError.
func (c *Child) Err() error {
	<-c.ended
	return c.err
}

func (c *Child) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Kill ends the process and its group as kill -9 does, also one that is
// stopped, and waits until it is gone.
func (c *Child) Kill() {
	c.signal(syscall.SIGKILL)
	<-c.ended
}

// Term asks the process to end. One that is stopped hears it after Cont.
func (c *Child) Term() { c.signal(syscall.SIGTERM) }

// Stop freezes the process and its group.
func (c *Child) Stop() { c.signal(syscall.SIGSTOP) }

// Cont lets them go on.
func (c *Child) Cont() { c.signal(syscall.SIGCONT) }

// signal sends s to the group, or, for what asks politely, to the process alone.
func (c *Child) signal(s syscall.Signal) {
	if c.hasEnded() {
		return
	}
	if s == syscall.SIGTERM {
		_ = c.cmd.Process.Signal(s) // gone already is as good
		return
	}
	_ = syscall.Kill(-c.PID(), s) // likewise
}

// LastWords returns the end of what it printed, so many lines at most.
func (c *Child) LastWords(lines int) string {
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

// cleanEnv drops the settings of other kelpies.
func cleanEnv(env []string) []string {
	return slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, "KELPIE_") })
}
