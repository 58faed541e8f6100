package work

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// open returns a worker of a new folder.
func open(t *testing.T, jobs *queue.Client) (w *Worker, dir string) {
	t.Helper()
	dir = t.TempDir()
	w, err := Open(dir, "n1", jobs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, dir
}

// job makes one attempt at a task.
func job(t *testing.T, task Task, attempt int, fence int64) *queue.Job[[]byte] {
	t.Helper()
	task.Op = "p1/7"
	payload, err := task.Seal()
	if err != nil {
		t.Fatal(err)
	}
	return &queue.Job[[]byte]{
		Info: queue.Info{ID: "j1", Queue: "mail", Attempt: attempt, Fence: fence, MaxAttempts: 3, Priority: 4}, In: payload,
	}
}

// read returns the objects of a file of lines.
func read[T any](t *testing.T, path string) (out []T) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		out = append(out, v)
	}
	return out
}

func ledger(t *testing.T, dir string) []history.Mark {
	t.Helper()
	return read[history.Mark](t, filepath.Join(dir, history.LedgerDir, fmt.Sprintf("n1-%d.jsonl", os.Getpid())))
}

var errElse = errors.New("something else")

func TestAHandlerDoesWhatItsTaskSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		task     Task
		attempt  int
		fence    int64
		cutAfter time.Duration
		cause    error
		took     time.Duration
		outcome  string
		says     string // the cause in the ledger
		fails    bool
	}{
		"it runs for its time and succeeds":               {task: Task{Run: time.Second}, took: time.Second, outcome: "ok"},
		"a failure comes after the run":                   {task: Task{Run: time.Second, Acts: []Act{Fail}}, took: time.Second, outcome: "fail", fails: true},
		"the next attempt may succeed":                    {task: Task{Acts: []Act{Fail, OK}}, attempt: 2, outcome: "ok"},
		"a job may be discarded":                          {task: Task{Acts: []Act{Discard}}, outcome: "discard", fails: true},
		"a fence that is a multiple of 4 snoozes":         {task: Task{Acts: []Act{Snooze}, Nap: time.Second}, fence: 8, outcome: "snooze", fails: true},
		"others do not, so a snooze soon comes to an end": {task: Task{Acts: []Act{Snooze}, Nap: time.Second}, fence: 10, outcome: "ok"},
		"a stop of the node cuts it": {
			task: Task{Run: time.Hour}, cutAfter: time.Second, cause: queue.ErrShutdown, took: time.Second, outcome: "cut", says: "shutdown", fails: true,
		},
		"a lost session cuts it": {
			task: Task{Run: time.Hour}, cutAfter: time.Second, cause: queue.ErrSessionLost, took: time.Second, outcome: "cut", says: "session lost", fails: true,
		},
		"a cancellation cuts it": {
			task: Task{Run: time.Hour}, cutAfter: time.Second, cause: queue.ErrCancelled, took: time.Second, outcome: "cut", says: "cancelled", fails: true,
		},
		"another cause is told as it is": {
			task: Task{Run: time.Hour}, cutAfter: time.Second, cause: errElse, took: time.Second, outcome: "cut", says: "something else", fails: true,
		},
		"an overrun waits for its timeout": {
			task: Task{Acts: []Act{Overrun}}, cutAfter: time.Second, cause: queue.ErrTimeout, took: time.Second, outcome: "cut", says: "timeout", fails: true,
		},
		"and not for ever": {task: Task{Acts: []Act{Overrun}}, took: longestOverrun, outcome: "fail", fails: true},
		"a deaf one runs on and succeeds": {
			task: Task{Run: time.Hour, Acts: []Act{Deaf}}, cutAfter: time.Second, cause: queue.ErrShutdown, took: time.Hour, outcome: "ok", says: "shutdown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, dir := open(t, nil)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.cause != nil {
					defer time.AfterFunc(tt.cutAfter, func() { cancel(tt.cause) }).Stop()
				}
				began := time.Now()
				err := w.Handle(ctx, job(t, tt.task, max(tt.attempt, 1), tt.fence))
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				if (err != nil) != tt.fails {
					t.Errorf("error %v", err)
				}
				if tt.outcome == "cut" && !errors.Is(err, tt.cause) {
					t.Errorf("error %v does not tell the cause", err)
				}
			})
			marks := ledger(t, dir)
			if len(marks) != 2 || marks[0].E != "start" || marks[1].E != "end" {
				t.Fatalf("ledger %+v", marks)
			}
			if marks[1].Outcome != tt.outcome || marks[1].Cause != tt.says {
				t.Errorf("outcome %q, cause %q, want %q, %q", marks[1].Outcome, marks[1].Cause, tt.outcome, tt.says)
			}
		})
	}
}

func TestTheLedgerNamesTheAttempt(t *testing.T) {
	t.Parallel()
	w, dir := open(t, nil)
	j := job(t, Task{}, 2, 99)
	if err := w.Handle(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	marks := ledger(t, dir)
	want := history.Mark{
		T: marks[0].T, E: "start", ID: "j1", Queue: "mail", Op: "p1/7", Node: "n1", PID: os.Getpid(), Attempt: 2, Fence: 99, Sum: Sum(j.In),
	}
	if marks[0] != want {
		t.Errorf("start %+v, want %+v", marks[0], want)
	}
	want.T, want.E, want.Sum, want.Outcome = marks[1].T, "end", "", "ok"
	if marks[1] != want {
		t.Errorf("end %+v, want %+v", marks[1], want)
	}
	if marks[1].T < marks[0].T {
		t.Error("it ended before it started")
	}
}

func TestAPanicWritesItsEndFirst(t *testing.T) {
	t.Parallel()
	w, dir := open(t, nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
			if marks := ledger(t, dir); len(marks) != 2 || marks[1].Outcome != "panic" {
				t.Errorf("ledger at the panic: %+v", marks)
			}
		}()
		_ = w.Handle(t.Context(), job(t, Task{Acts: []Act{Panic}}, 1, 1))
	}()
}

func TestABrokenPayloadIsToldAndFails(t *testing.T) {
	t.Parallel()
	w, dir := open(t, nil)
	j := job(t, Task{}, 1, 1)
	j.In[len(j.In)-2] ^= 1
	if err := w.Handle(t.Context(), j); err == nil {
		t.Error("a broken payload succeeded")
	}
	if marks := ledger(t, dir); !strings.HasPrefix(marks[0].Sum, "bad: ") || marks[1].Outcome != "fail" {
		t.Errorf("ledger %+v", marks)
	}
}

func TestWithoutALedgerNothingRuns(t *testing.T) {
	t.Parallel()
	w, _ := open(t, nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Handle(t.Context(), job(t, Task{Run: time.Hour}, 1, 1)); err == nil {
		t.Error("it ran")
	}
}

// TestHelperRunsAJob is the body of a process that gets killed.
func TestHelperRunsAJob(t *testing.T) {
	dir := os.Getenv("KELPIE_TEST_WORK")
	if dir == "" {
		return // not the killed process
	}
	w, err := Open(dir, "n2", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Handle(t.Context(), job(t, Task{}, 1, 1))
		_ = w.Handle(t.Context(), job(t, Task{Run: time.Hour}, 1, 2))
	}()
	<-done
}

func TestAKilledProcessLeavesItsStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperRunsAJob$")
	cmd.Env = append(os.Environ(), "KELPIE_TEST_WORK="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, history.LedgerDir, fmt.Sprintf("n2-%d.jsonl", cmd.Process.Pid))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n := 0; n < 3 && t.Context().Err() == nil; <-tick.C { // its second job has started
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		n = 0
		for lines := bufio.NewScanner(f); lines.Scan(); {
			n++
		}
		f.Close()
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	marks := read[history.Mark](t, path)
	if len(marks) != 3 || marks[2].E != "start" || marks[2].Fence != 2 || marks[2].PID != cmd.Process.Pid {
		t.Errorf("ledger of the killed process: %+v", marks)
	}
}
