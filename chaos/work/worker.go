package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// Worker does the jobs of one node process and keeps its ledger. It is safe for
// concurrent use.
type Worker struct {
	node   string
	name   string // of this process as a client, unique in the run
	jobs   *queue.Client
	ledger *history.Writer
	calls  *history.Writer
	n      atomic.Int64 // last call
}

// Open returns the worker of this process. It opens, in the folder dir of the
// run, the ledger ledger/<node>-<pid>.jsonl and the calls of all clients,
// client.jsonl, both for appending. Children are enqueued through jobs, which
// stays the caller's to close; nil where no job has any.
func Open(dir, node string, jobs *queue.Client) (*Worker, error) {
	process := fmt.Sprintf("%s-%d", node, os.Getpid())
	ledger, err := history.Append(filepath.Join(dir, history.LedgerDir, process+".jsonl"))
	if err != nil {
		return nil, err
	}
	calls, err := history.Append(filepath.Join(dir, history.ClientFile))
	if err != nil {
		return nil, errors.Join(err, ledger.Close())
	}
	name := process + "-" + strconv.FormatInt(history.Now(), 36) // a process id comes back in a long run
	return &Worker{node: node, name: name, jobs: jobs, ledger: ledger, calls: calls}, nil
}

// Close closes the files. No handler may run any more.
func (w *Worker) Close() error { return errors.Join(w.ledger.Close(), w.calls.Close()) }

// Handle is the handler of Kind, for node.Handle. A ledger that cannot be
// written fails the attempt before it does anything.
func (w *Worker) Handle(ctx context.Context, job *queue.Job[[]byte]) (err error) {
	m := history.Mark{ID: job.ID, Queue: job.Queue, Node: w.node, PID: os.Getpid(), Attempt: job.Attempt, Fence: job.Fence}
	task, bad := Verify(job.In)
	m.Op = task.Op
	start, end := m, m
	start.T, start.E, start.Sum = history.Now(), "start", Sum(job.In)
	if bad != nil {
		start.Sum = "bad: " + bad.Error()
	}
	if err := w.ledger.Write(start); err != nil {
		return fmt.Errorf("the ledger cannot be written: %w", err)
	}
	defer func() {
		broken := recover()
		if broken != nil {
			end.Outcome = string(Panic)
		}
		end.T, end.E = history.Now(), "end"
		if ctx.Err() != nil {
			end.Cause = cause(ctx)
		}
		if fault := w.ledger.Write(end); fault != nil {
			err = errors.Join(err, fmt.Errorf("the ledger cannot be written: %w", fault))
		}
		if broken != nil {
			panic(broken)
		}
	}()
	if bad != nil {
		end.Outcome = string(Fail)
		return bad
	}
	end.Outcome, err = w.perform(ctx, task, job)
	return err
}

// cut is the outcome of an attempt that its context ended.
const cut = "cut"

// longestOverrun bounds an attempt that waits for its context.
const longestOverrun = time.Minute

// errPlanned is the failure of an attempt that was meant to fail.
var errPlanned = errors.New("this attempt was planned to fail")

// perform does one attempt and returns its outcome for the ledger.
func (w *Worker) perform(ctx context.Context, t Task, job *queue.Job[[]byte]) (string, error) {
	act, length := t.act(job.Attempt), t.Run
	deadline := ctx
	switch act {
	case Deaf:
		deadline = context.WithoutCancel(ctx)
	case Overrun:
		length = longestOverrun
	case Child:
		if err := w.bear(ctx, t, job); err != nil {
			return failed(ctx), err
		}
	}
	if err := pause(deadline, length); err != nil {
		return cut, err
	}
	switch act {
	case Fail, Overrun:
		return string(Fail), errPlanned
	case Panic:
		panic("this attempt was planned to panic")
	case Discard:
		return string(Discard), queue.Discard(errPlanned)
	case Snooze:
		if job.Fence%4 == 0 {
			return string(Snooze), queue.Snooze(t.Nap)
		}
	}
	return string(OK), nil
}

// failed is the outcome of an attempt that ended with an error of its own or
// because its context ended.
func failed(ctx context.Context) string {
	if ctx.Err() != nil {
		return cut
	}
	return string(Fail)
}

// pause returns after d, or when ctx ends, with the cause.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cause is why a context ended, in a word where the node did it.
func cause(ctx context.Context) string {
	err := context.Cause(ctx)
	for word, known := range map[string]error{
		"shutdown": queue.ErrShutdown, "session lost": queue.ErrSessionLost,
		"timeout": queue.ErrTimeout, "cancelled": queue.ErrCancelled,
	} {
		if errors.Is(err, known) {
			return word
		}
	}
	return err.Error()
}
