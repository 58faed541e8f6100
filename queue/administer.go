package queue

import (
	"context"
	"fmt"
	"time"
)

// Reschedule gives a waiting or delayed job another due time: at, or delay from
// now by Redis's clock if at is zero. It returns the new due time. ErrNoJob;
// ErrWrongState: the job is active or has ended; ErrUnknown as for Enqueue.
func (c *Client) Reschedule(ctx context.Context, queue, id string, delay time.Duration, at time.Time) (time.Time, error) {
	o := JobOptions{Queue: queue, ID: id, Delay: delay, At: at}
	if err := o.check(); err != nil {
		return time.Time{}, err
	}
	if err := CheckID(id); err != nil {
		return time.Time{}, err
	}
	when := ""
	if !at.IsZero() {
		when = fmt.Sprint(atMillis(at))
	}
	m := &command{script: rescheduleScript, args: []any{id, ceilMillis(delay), when}}
	outcome, err := c.lane(o.Queue).do(ctx, m)
	if err == nil && outcome != "" {
		switch outcome[0] {
		case 'O':
			return time.UnixMilli(parseInt(outcome[1:])).UTC(), nil
		case 'A':
			err = fmt.Errorf("%w: the job is active", ErrWrongState)
		case 'E':
			err = fmt.Errorf("%w: the job has ended", ErrWrongState)
		default:
			err = ErrNoJob
		}
	}
	return time.Time{}, wrap("reschedule", o.Queue, id, err)
}

// ReviveBatch is how many dead jobs Revive sends in one command.
const ReviveBatch = 100

// Revive moves dead jobs back to waiting with all attempts anew, and returns a
// result for each. ErrNoJob: it is not among the dead.
func (c *Client) Revive(ctx context.Context, queue string, ids []string) []Result {
	results := make([]Result, len(ids))
	for i, id := range ids {
		results[i].ID = id
	}
	if err := CheckName("queue", queue); err != nil {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	for rest := results; len(rest) > 0; {
		rest = rest[c.revive(ctx, queue, rest[:min(len(rest), ReviveBatch)]):]
	}
	return results
}

// revive returns how many of the batch have their result: large bodies take more
// than one step.
func (c *Client) revive(ctx context.Context, queue string, batch []Result) int {
	m := &command{script: reviveScript, items: len(batch)}
	for _, r := range batch {
		m.args = append(m.args, r.ID)
		m.bytes += len(r.ID)
	}
	outcomes, err := c.lane(queue).do(ctx, m)
	for i := range batch {
		switch {
		case err != nil:
			batch[i].Err = wrap("revive", queue, batch[i].ID, err)
		case outcomes[i] == 'L':
			return i
		case outcomes[i] != 'O':
			batch[i].Err = wrap("revive", queue, batch[i].ID, ErrNoJob)
		}
	}
	return len(batch)
}
