package redistest

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestHelperHoldsAServer is the body of a test process that gets killed: it
// starts a server, tells where, and waits.
func TestHelperHoldsAServer(t *testing.T) {
	if os.Getenv("KELPIE_TEST_HOLD") == "" {
		return // not the killed process
	}
	s := Dedicated(t)
	if os.Getenv("KELPIE_TEST_HOLD") == "paused" {
		s.Pause()
	}
	dir := ""
	if p, ok := s.be.(*process); ok {
		dir = p.dir
	}
	os.Stdout.WriteString("holding " + s.Addr() + " " + dir + "\n")
	<-t.Context().Done()
}

func TestAServerDiesWithItsTestProcess(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]string{
		"when that is killed": "running", "also while the server is paused": "paused",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			addr, dir := holdAndDie(ctx, t, mode)
			until(ctx, t, "the server is gone", func() bool {
				l, err := net.Listen("tcp", addr)
				if err == nil {
					l.Close()
				}
				return err == nil
			})
			if dir != "" {
				until(ctx, t, "its directory is gone", func() bool {
					_, err := os.Stat(dir)
					return os.IsNotExist(err)
				})
			}
		})
	}
}

// holdAndDie runs this test binary until it holds a server, and kills it -9.
func holdAndDie(ctx context.Context, t *testing.T, mode string) (addr, dir string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHelperHoldsAServer$", "-test.v")
	cmd.Env = append(os.Environ(), "KELPIE_TEST_HOLD="+mode)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) >= 2 && f[0] == "holding" {
			addr, dir = f[1], strings.Join(f[2:], " ")
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if addr == "" {
		t.Fatal("the test process never held a server")
	}
	return addr, dir
}

func until(ctx context.Context, t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within a minute: %s", what)
		case <-tick.C:
		}
	}
}
