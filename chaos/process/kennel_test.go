package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T, o Options) *Kennel {
	t.Helper()
	k, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// eventually waits for what happens in another process.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// gone tells that there is no such process, or a dead one that nobody has
// waited for yet.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && strings.HasPrefix(state, "Z")
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestCloseEndsAllAndKeepsOnlyAFolderThatWasNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dir   string
		stays bool
	}{
		"a temporary folder goes":     {"", false},
		"a folder that was named not": {filepath.Join(t.TempDir(), "run", "logs"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, Options{Dir: tt.dir})
			var pids []int
			for _, n := range []string{"a", "b", "c"} {
				c, err := k.Start(Command{Name: n, Program: os.Args[0], Args: []string{"idle"}})
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, c.PID())
				if n == "b" {
					c.Stop()
				}
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
			for _, pid := range pids {
				if !gone(pid) {
					t.Errorf("process %d is still there", pid)
				}
			}
			if there(k.Dir()) != tt.stays {
				t.Errorf("folder %s there: %v, want %v", k.Dir(), !tt.stays, tt.stays)
			}
			if err := k.Close(); err != nil {
				t.Errorf("a second Close: %v", err)
			}
			if _, err := k.Start(Command{Name: "late", Program: "true"}); err == nil {
				t.Error("a closed kennel started a process")
			}
			if _, err := k.Promise("true"); err == nil {
				t.Error("a closed kennel took a promise")
			}
		})
	}
}

func TestAKillOfTheOwnerLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "promised")
	owner := exec.Command(os.Args[0], "owner", filepath.Join(dir, "kennel"), file)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var idle, stopped, watchdog int
	if _, scan := fmt.Sscan(line, &idle, &stopped, &watchdog); err != nil || scan != nil {
		t.Fatalf("the owner said %q: %v, %v", line, err, scan)
	}
	if gone(idle) || gone(stopped) || gone(watchdog) || there(file) {
		t.Error("too early: this test would not see them go")
	}
	_ = owner.Process.Kill()
	_ = owner.Wait()
	eventually(t, "all processes are gone", func() bool { return gone(idle) && gone(stopped) && gone(watchdog) })
	if text, err := os.ReadFile(file); err != nil || string(text) != "it's $HOME\n" {
		t.Errorf("the promise wrote %q, %v", text, err)
	}
	if !there(filepath.Join(dir, "kennel", "idle.log")) {
		t.Error("the log is gone with its owner")
	}
}

func TestPromisesAreKeptOnceTheLatestFirst(t *testing.T) {
	t.Parallel()
	k := open(t, Options{})
	file := filepath.Join(t.TempDir(), "order")
	var keeps []func() error
	for _, word := range []string{"first", "second", "third"} {
		keep, err := k.Promise("/bin/sh", "-c", `echo "$1" >> "$2"`, "sh", word, file)
		if err != nil {
			t.Fatal(err)
		}
		keeps = append(keeps, keep)
	}
	if err := keeps[1](); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "second\nthird\nfirst\n" {
		t.Errorf("the promises wrote %q, %v", text, err)
	}
}

func TestAPromiseThatCannotBeKeptIsTold(t *testing.T) {
	t.Parallel()
	k := open(t, Options{})
	missing := filepath.Join(t.TempDir(), "missing")
	keep, err := k.Promise("rmdir", missing)
	if err != nil {
		t.Fatal(err)
	}
	if err := keep(); err == nil || !strings.Contains(err.Error(), "rmdir "+missing+": exit status 1") {
		t.Errorf("keep = %v", err)
	}
	if err := k.Close(); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("Close = %v, want what failed", err)
	}
	if there(k.Dir()) {
		t.Error("the folder stayed, since a promise failed")
	}
	if _, err := open(t, Options{}).Promise("rm", "a\nb"); err == nil {
		t.Error("a promise of two lines was taken")
	}
}

func TestAKennelWithoutWatchdogStartsNothing(t *testing.T) {
	t.Parallel()
	k := open(t, Options{})
	_ = k.watchdog.Process.Kill()
	eventually(t, "the watchdog is gone", func() bool {
		_, err := k.Start(Command{Name: "idle", Program: os.Args[0], Args: []string{"idle"}})
		return err != nil && strings.Contains(err.Error(), "the watchdog is gone")
	})
	if err := k.Close(); err == nil {
		t.Error("Close says nothing of the dead watchdog")
	}
	_ = os.RemoveAll(k.Dir())
}
