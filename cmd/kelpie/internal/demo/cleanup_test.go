package demo

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// traces is what a demo says of itself that must be gone in the end.
type traces struct {
	pids  []string
	addrs []string
}

var (
	pidSaid  = regexp.MustCompile(`process (\d+)`)
	addrSaid = regexp.MustCompile(`(?:redis|http)://(127\.0\.0\.1:\d+)`)
)

// read collects traces until the third node has started.
func (t *traces) read(r io.Reader) {
	for lines := bufio.NewScanner(r); len(t.pids) < len(firstNodes) && lines.Scan(); {
		if m := addrSaid.FindStringSubmatch(lines.Text()); m != nil {
			t.addrs = append(t.addrs, m[1])
		}
		if m := pidSaid.FindStringSubmatch(lines.Text()); m != nil {
			t.pids = append(t.pids, m[1])
		}
	}
}

// state is the letter that ps would show, "" where there is no such process. A
// bare Linux has no ps, and other systems have no /proc.
func state(pid string) string {
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat") // pid (name) state ...
		_, rest, _ := strings.Cut(string(stat), ") ")
		return rest
	}
	out, _ := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return strings.TrimSpace(string(out))
}

// left says what is still there.
func (t *traces) left(dir string) (left []string) {
	for _, pid := range t.pids {
		if s := state(pid); s != "" && !strings.HasPrefix(s, "Z") {
			left = append(left, "process "+pid)
		}
	}
	for _, addr := range t.addrs {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			left = append(left, "port "+addr)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return append(left, err.Error())
	}
	for _, f := range files {
		left = append(left, "file "+f.Name())
	}
	return left
}

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	send := func(s syscall.Signal) func(*exec.Cmd, io.Closer, io.Closer) {
		return func(c *exec.Cmd, _, _ io.Closer) { _ = c.Process.Signal(s) }
	}
	for name, tt := range map[string]struct {
		part string
		end  func(c *exec.Cmd, stdin, stdout io.Closer)
		code int // -1: by a signal
	}{
		"after Ctrl-C":                       {"perform", send(syscall.SIGINT), 130},
		"after a polite request":             {"perform", send(syscall.SIGTERM), 143},
		"after the terminal was closed":      {"perform", send(syscall.SIGHUP), 129},
		"after the reader of stdout left":    {"perform", func(_ *exec.Cmd, _, stdout io.Closer) { stdout.Close() }, 1},
		"after a panic":                      {"panic", func(_ *exec.Cmd, stdin, _ io.Closer) { stdin.Close() }, 2},
		"after a kill -9 of the demo itself": {"perform", send(syscall.SIGKILL), -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := exec.Command(os.Args[0], tt.part)
			c.Env = append(os.Environ(), "TMPDIR="+dir)
			stdin, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			var tr traces
			tr.read(stdout)
			if len(tr.pids) != len(firstNodes) || len(tr.addrs) != 2 {
				t.Errorf("the demo said %+v, want %d processes, a store and a receiver", tr, len(firstNodes))
			}
			if left := tr.left(dir); len(left) != len(firstNodes)+3 {
				t.Errorf("while it runs there are %v: this test would not see them go", left)
			}
			tt.end(c, stdin, stdout)
			_ = c.Wait()
			if got := c.ProcessState.ExitCode(); got != tt.code {
				t.Errorf("exit code %d, want %d", got, tt.code)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // the watchdog may still be at it
			defer cancel()
			if await(ctx, func() (bool, error) { return len(tr.left(dir)) == 0, nil }) != nil {
				t.Errorf("left behind: %v", tr.left(dir))
			}
		})
	}
}

func TestANodeThatEndsByItselfEndsTheDemo(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	o := options{program: program, out: &out, errors: &errs}
	err = o.run(t.Context())
	var e *Error
	if !errors.As(err, &e) || e.ExitCode() != exitFailed || !strings.Contains(err.Error(), "ended by itself: exit status 1") {
		t.Errorf("run = %v, want exit code 1 and what the node did", err)
	}
	if !strings.Contains(errs.String(), "--- bess, last lines of its log") {
		t.Errorf("stderr has %q, want the logs", errs.String())
	}
}
