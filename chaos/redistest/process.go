package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Ports for servers: below what Linux (32768) and the BSDs (49152) give to
// clients, away from the ports that people know.
const lowPort, highPort = 20000, 32000

// process is a redis-server on this machine.
type process struct {
	program string
	args    []string

	dir   string // its files; removed by the watchdog
	port  int
	guard *watchdog
	cmd   *exec.Cmd     // nil while none runs
	ended chan struct{} // closed once cmd has been waited for
}

func (p *process) start(ctx context.Context) error {
	if p.dir == "" {
		if err := p.settle(); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	args := append([]string{
		"--port", strconv.Itoa(p.port), "--bind", "127.0.0.1", "--dir", p.dir,
		"--daemonize", "no", "--save", "", "--appendonly", "no",
	}, p.args...)
	cmd := exec.Command(p.program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the test; the watchdog sees to the server
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { // ends with the process; kill waits for it
		defer close(ended)
		_ = cmd.Wait() // killed is how it is meant to end
	}()
	p.cmd, p.ended = cmd, ended
	return p.guard.watch(cmd.Process.Pid)
}

// settle takes a directory, a port and a watchdog for the server's whole life.
func (p *process) settle() error {
	dir, err := os.MkdirTemp("", "kelpie-redis-")
	if err != nil {
		return err
	}
	p.dir = dir
	if p.guard, err = startWatchdog(removeDir, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	p.port, err = freePort()
	return err
}

func (p *process) kill() error {
	if p.cmd == nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	<-p.ended
	p.cmd = nil
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return errors.Join(err, p.guard.watch(0))
}

func (p *process) pause() error  { return p.signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.signal(syscall.SIGCONT) }

func (p *process) signal(s os.Signal) error {
	if p.cmd == nil {
		return errors.New("it does not run")
	}
	return p.cmd.Process.Signal(s)
}

func (p *process) remove() error {
	if p.guard == nil {
		return nil
	}
	return errors.Join(p.kill(), p.guard.release())
}

// dead reports whether the process has ended by itself.
func (p *process) dead() bool {
	if p.cmd == nil {
		return true
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// is reports whether INFO's text is of this very process: two test binaries may
// have met on one port.
func (p *process) is(info string) bool {
	return p.cmd != nil && strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", p.cmd.Process.Pid))
}

func (p *process) addr() string    { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }
func (p *process) logPath() string { return filepath.Join(p.dir, "server.log") }

// output returns the last lines that the server wrote.
func (p *process) output() string {
	text, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	return tail(string(text))
}

// tail returns the last lines of a log.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// freePort returns a port on 127.0.0.1 that nobody listens on. Test binaries
// run side by side, and until the server has started another one may choose the
// same: hence the choice at random.
func freePort() (int, error) {
	for range 100 {
		port := lowPort + rand.IntN(highPort-lowPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1", lowPort, highPort)
}
