package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Request is one job to enqueue.
type Request struct {
	Kind    string
	Payload []byte // opaque, kept to the bit; not changed by the caller until Enqueue returns
	JobOptions

	chosen bool
}

// Result is the outcome of one of many.
type Result struct {
	ID  string // also with an error, where one was given to the job
	Err error
}

// Enqueue adds one job and returns its id once Redis has stored it.
//
// Without error the job is accepted. ErrExists: the chosen id is known already;
// nothing was stored. ErrUnknown: the job may have been stored; with a chosen id
// Enqueue can be repeated safely within 10 minutes of the job's end.
// ErrUnconfirmed: stored, but not yet on as many replicas as wanted. Any other
// error: nothing was stored. A command without an answer is repeated for
// Options.Patience, or until ctx ends.
func (c *Client) Enqueue(ctx context.Context, r Request) (string, error) {
	if err := r.prepare(c.opts.MaxPayload); err != nil {
		return "", err
	}
	return r.ID, c.enqueue(ctx, r.Queue, []*Request{&r})[0]
}

// EnqueueMany adds jobs and returns a result for each, in the same order. Jobs
// of one queue keep their order and are stored in batches; a batch that fails
// does not undo others.
func (c *Client) EnqueueMany(ctx context.Context, requests []Request) []Result {
	results := make([]Result, len(requests))
	prepared := make([]Request, len(requests))
	byQueue := map[string][]int{}
	for i, r := range requests {
		if err := r.prepare(c.opts.MaxPayload); err != nil {
			results[i] = Result{r.ID, err}
			continue
		}
		prepared[i], results[i].ID = r, r.ID
		byQueue[r.Queue] = append(byQueue[r.Queue], i)
	}
	var wg sync.WaitGroup
	for queue, at := range byQueue {
		wg.Go(func() {
			for len(at) > 0 {
				n := chunk(prepared, at)
				c.enqueueChunk(ctx, queue, prepared, at[:n], results)
				at = at[n:]
			}
		})
	}
	wg.Wait()
	return results
}

// chunk says how many of the next requests fit in one flight.
func chunk(all []Request, at []int) int {
	n, bytes := 0, 0
	for _, i := range at {
		bytes += len(all[i].Payload)
		if n == flightItems || n > 0 && bytes > flightBytes {
			break
		}
		n++
	}
	return n
}

func (c *Client) enqueueChunk(ctx context.Context, queue string, all []Request, at []int, results []Result) {
	batch := make([]*Request, len(at))
	for j, i := range at {
		batch[j] = &all[i]
	}
	for j, err := range c.enqueue(ctx, queue, batch) {
		results[at[j]].Err = err
	}
}

// prepare checks a request and fills in what it leaves open.
func (r *Request) prepare(maxPayload int) error {
	if err := CheckName("kind", r.Kind); err != nil {
		return err
	}
	if err := r.JobOptions.check(); err != nil {
		return err
	}
	if len(r.Payload) > maxPayload {
		return fmt.Errorf("payload of %d bytes: %w of %d bytes%w", len(r.Payload), ErrTooLarge, maxPayload, bad)
	}
	r.chosen = r.ID != ""
	if !r.chosen {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		r.ID = id.String()
	}
	return nil
}

// enqueue sends prepared requests of one queue and returns an error for each.
func (c *Client) enqueue(ctx context.Context, queue string, batch []*Request) []error {
	m := &command{script: enqueueScript, items: len(batch), args: make([]any, 0, 7*len(batch))}
	for _, r := range batch {
		at := ""
		if !r.At.IsZero() {
			at = fmt.Sprint(atMillis(r.At))
		}
		m.args = append(m.args, r.ID, r.head(), r.tail(), 9-*r.Priority, ceilMillis(r.Delay), at, r.Payload)
		m.bytes += len(r.Payload)
		m.replicas = max(m.replicas, r.WaitReplicas)
	}
	outcomes, err := c.lane(queue).do(ctx, m)
	errs := make([]error, len(batch))
	var short *unconfirmedError
	for i := range errs {
		switch {
		case err != nil && !errors.As(err, &short):
			errs[i] = wrap("enqueue", queue, batch[i].ID, err)
		case i < len(outcomes) && outcomes[i] == 'E':
			errs[i] = wrap("enqueue", queue, batch[i].ID, ErrExists)
		case err != nil && batch[i].WaitReplicas > short.have: // others of the flight may have wanted more
			err := fmt.Errorf("%w: %d of %d replicas have it", ErrUnconfirmed, short.have, batch[i].WaitReplicas)
			errs[i] = wrap("enqueue", queue, batch[i].ID, err)
		}
	}
	return errs
}

// ceilMillis and atMillis round up: a job is never early.
func ceilMillis(d time.Duration) int64 {
	return (d + time.Millisecond - 1).Milliseconds()
}

func atMillis(t time.Time) int64 {
	return t.Add(time.Millisecond - 1).UnixMilli()
}
