package sweeper

import (
	"context"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

const (
	// lookEvery is how often a queue is looked at without a reason: the net under
	// a lost poke, and under a local clock that runs apart from Redis's.
	lookEvery = 10 * time.Second
	// settling is how long after the start of a term the last wait of the sweeper
	// before may still take a poke; each queue is looked at so often meanwhile.
	settling, settlingLook = 1200 * time.Millisecond, 200 * time.Millisecond
	// turnEvery is the longest that a loop sleeps, so that it is seen to live.
	turnEvery = time.Second
)

// promote moves due jobs until ctx ends: one bounded batch for each due queue,
// round and round, and a sleep until the next due time when there is none.
func (t *term) promote(ctx context.Context) {
	for t.goes(ctx, promoting) {
		due, wait := t.agenda.take(time.Now(), turnEvery)
		if len(due) == 0 {
			pause(ctx, wait, t.agenda.wake)
			continue
		}
		for _, q := range due {
			if !t.goes(ctx, promoting) {
				return
			}
			t.promoteBatch(ctx, q)
		}
	}
}

func (t *term) promoteBatch(ctx context.Context, q string) {
	var p queue.Promoted
	err := t.under(ctx, "promote", func(epoch int64) (err error) {
		p, err = t.s.o.Space.Promote(ctx, q, epoch)
		return err
	})
	now := time.Now() // after the answer: a look may be late by its way, never early
	if err != nil {
		t.agenda.failed(q, now)
		return
	}
	t.s.count.promoted.Add(int64(p.Moved))
	t.s.count.swept.Store(&now)
	t.agenda.plan(q, now.Add(nextLook(p, now.Sub(t.began))))
}

// nextLook is when to look at a queue again, counted from the answer. It has
// whole milliseconds by Redis's clock, rounded so that it is never too early.
func nextLook(p queue.Promoted, age time.Duration) time.Duration {
	wait := lookEvery
	if p.Next >= 0 {
		wait = min(wait, p.Next)
	}
	if age < settling {
		wait = min(wait, settlingLook)
	}
	if p.Moved == 0 {
		wait = max(wait, time.Millisecond) // whatever Redis says: no call without a pause
	}
	return wait
}
