package traffic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/work"
	"github.com/kelpiehq/kelpie/queue"
)

// ending is what became of one item in a call.
type ending struct {
	called bool // false: the item's job is not known, nothing was called
	phase  string
	final  bool // a new call would fail in the same way
}

// settled are failures that stay.
var settled = []error{queue.ErrExists, queue.ErrBadInput, queue.ErrTooLarge, queue.ErrClosed}

// call does one call and writes both of its lines for each item. An error means
// that they could not be written.
func (p *producer) call(ctx context.Context, items []Item) ([]ending, error) {
	if items[0].Verb != Enqueue {
		e, err := p.change(ctx, items[0])
		return []ending{e}, err
	}
	ops, requests, err := p.begun(items)
	if err != nil {
		return nil, err
	}
	var ends []history.Op
	var finals []bool
	if items[0].By == ByCLI {
		ends = p.byCLI(ctx, ops, requests)
	} else {
		ends, finals = p.byLibrary(ctx, items[0], ops, requests)
	}
	out := make([]ending, len(items))
	for i, end := range ends {
		out[i] = ending{called: true, phase: end.Phase, final: finals != nil && finals[i] || end.Error == work.Exists}
		if end.Phase != history.Fail {
			p.learn(items[i], end.ID)
		}
		if err := p.calls.Write(end); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// begun makes the requests of some items and writes that they are called.
func (p *producer) begun(items []Item) (ops []history.Op, requests []queue.Request, err error) {
	for _, it := range items {
		n := p.number(it)
		it.Task.Op = fmt.Sprintf("%s/%d", p.name, n)
		payload, err := it.Task.Seal()
		if err != nil {
			return nil, nil, err
		}
		if it.Due > 0 {
			it.Delay = max(it.Due-p.elapsed(), 0)
		}
		it.Delay = it.Delay.Round(time.Millisecond)
		op := history.Op{
			T: history.Now(), Phase: history.Invoke, Client: p.name, N: n, Verb: Enqueue, By: it.By, Queue: it.Queue,
			ID: it.ID, Chosen: it.ID != "", Delay: it.Delay.Milliseconds(), Priority: it.Priority, Max: it.Max, Sum: work.Sum(payload),
		}
		if err := p.calls.Write(op); err != nil {
			return nil, nil, err
		}
		ops = append(ops, op)
		requests = append(requests, queue.Request{Kind: work.Kind.Name(), Payload: payload, JobOptions: queue.JobOptions{
			Queue: it.Queue, ID: it.ID, Delay: it.Delay, Priority: queue.Priority(it.Priority), MaxAttempts: it.Max,
			Backoff: it.Backoff, Timeout: it.Timeout, Retention: it.Retention,
		}})
	}
	return ops, requests, nil
}

// byLibrary enqueues one job, or several by one call.
func (p *producer) byLibrary(ctx context.Context, first Item, ops []history.Op, requests []queue.Request) (ends []history.Op, finals []bool) {
	if first.GiveUp > 0 && ops[0].N == first.N { // at the first try only
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, first.GiveUp)
		defer stop()
	}
	results := make([]queue.Result, 1)
	if len(requests) == 1 {
		results[0].ID, results[0].Err = p.jobs.Enqueue(ctx, requests[0])
	} else {
		results = p.jobs.EnqueueMany(ctx, requests)
	}
	for i, r := range results {
		ends = append(ends, work.Ended(ops[i], r.ID, r.Err))
		finals = append(finals, slices.ContainsFunc(settled, func(known error) bool { return errors.Is(r.Err, known) }))
	}
	return ends, finals
}

// change reschedules or revives the job of an earlier item.
func (p *producer) change(ctx context.Context, it Item) (ending, error) {
	id := p.known(it.Of)
	if id == "" {
		return ending{}, nil
	}
	op := history.Op{
		T: history.Now(), Phase: history.Invoke, Client: p.name, N: p.number(it), Verb: it.Verb, By: it.By, Queue: it.Queue,
		ID: id, Delay: it.Delay.Milliseconds(),
	}
	if err := p.calls.Write(op); err != nil {
		return ending{}, err
	}
	var err error
	var due time.Time
	if it.Verb == Revive {
		err = p.jobs.Revive(ctx, it.Queue, []string{id})[0].Err
	} else {
		due, err = p.jobs.Reschedule(ctx, it.Queue, id, time.Duration(op.Delay)*time.Millisecond, time.Time{})
	}
	end := work.Ended(op, id, err)
	if !due.IsZero() {
		end.Due = due.UnixMilli()
	}
	return ending{called: true, phase: end.Phase}, p.calls.Write(end)
}

// learn keeps the id of an item's job for those who change it.
func (p *producer) learn(it Item, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids[it.N] = id
}

func (p *producer) known(item int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[item]
}
