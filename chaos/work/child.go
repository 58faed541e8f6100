package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// Bounds of a handler that enqueues while Redis is away.
const (
	childCalls = 5
	childPause = 200 * time.Millisecond
)

// childID is the id of the n-th child, from 1, of a job.
func childID(parent string, n int) string { return fmt.Sprintf("%s-child%d", parent, n) }

// bear enqueues the children of a job. One that is there already is as good as a
// new one.
func (w *Worker) bear(ctx context.Context, t Task, job *queue.Job[[]byte]) error {
	for n := 1; n <= t.Children; n++ {
		if err := w.bearOne(ctx, t, job, childID(job.ID, n)); err != nil {
			return fmt.Errorf("child %d of %d: %w", n, t.Children, err)
		}
	}
	return nil
}

// bearOne makes a few calls with the same id, each one a line of the history.
func (w *Worker) bearOne(ctx context.Context, t Task, job *queue.Job[[]byte], id string) error {
	for call := 1; ; call++ {
		err := w.enqueue(ctx, t, job, id)
		if err == nil || errors.Is(err, queue.ErrExists) {
			return nil
		}
		if call == childCalls {
			return err
		}
		if err := pause(ctx, childPause*time.Duration(call)); err != nil {
			return err
		}
	}
}

func (w *Worker) enqueue(ctx context.Context, t Task, job *queue.Job[[]byte], id string) error {
	op := history.Op{
		T: history.Now(), Phase: history.Invoke, Client: w.name, N: int(w.n.Add(1)), Verb: "enqueue", By: "handler",
		Queue: job.Queue, ID: id, Chosen: true, Priority: job.Priority, Max: job.MaxAttempts,
	}
	payload, err := Task{Op: fmt.Sprintf("%s/%d", op.Client, op.N), Run: t.Run}.Seal()
	if err != nil {
		return err
	}
	op.Sum = Sum(payload)
	if err := w.calls.Write(op); err != nil {
		return fmt.Errorf("the history cannot be written: %w", err) // before anything was sent
	}
	_, err = w.jobs.Enqueue(ctx, queue.Request{Kind: Kind.Name(), Payload: payload, JobOptions: queue.JobOptions{
		Queue: job.Queue, ID: id, Priority: queue.Priority(job.Priority), MaxAttempts: job.MaxAttempts,
	}})
	end := Ended(op, id, err)
	if fault := w.calls.Write(end); fault != nil {
		return errors.Join(err, fmt.Errorf("the history cannot be written: %w", fault))
	}
	return err
}

// Exists is the Error of a call that Redis refused because the id is known.
const Exists = "exists"

// Ended is the second line of a call that ended with err: ok, a definite failure
// or unknown. id is that of the job where the call has told it.
func Ended(op history.Op, id string, err error) history.Op {
	op.T, op.ID, op.Phase = history.Now(), id, history.OK
	switch {
	case errors.Is(err, queue.ErrExists):
		op.Phase, op.Error = history.Fail, Exists
	case errors.Is(err, queue.ErrUnconfirmed): // it is stored
		op.Error = err.Error()
	case queue.IsUnknown(err):
		op.Phase, op.Error = history.Unknown, err.Error()
	case err != nil:
		op.Phase, op.Error = history.Fail, err.Error()
	}
	return op
}
