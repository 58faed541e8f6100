package node

import (
	"context"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// A queue is listened to again as soon as it is empty, whatever the others do.
func TestIdleNodeOfTwoQueuesTakesEachJobSoon(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c := h.config("n1")
	c.Queues = []Queue{{"a", 1}, {"b", 1}}
	h.startWorking(c)
	late := 0
	for i := range 30 {
		asked := time.Now()
		id := h.do(work{}, queue.JobOptions{Queue: []string{"a", "a", "b"}[i%3]})
		eventually(t, patience, "it runs", func() bool { return len(h.ledger.starts(id)) == 1 })
		if h.ledger.starts(id)[0].at.Sub(asked) > 300*time.Millisecond {
			late++
		}
	}
	if late > 3 {
		t.Errorf("%d of 30 jobs were picked up after more than 300 ms", late)
	}
}

// A job without a wake token is found within about a second, also while other
// queues keep the node awake.
func TestLostTokenCostsASecondWhileOtherQueuesAreBusy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		workers int
		every   time.Duration
		each    work
	}{
		"slots are free":        {10, 100 * time.Millisecond, work{}},
		"slots are free for µs": {1, 0, work{Sleep: time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := realHerd(t)
			c := h.config("n1")
			c.Workers, c.Queues = tt.workers, []Queue{{"bulk", 1}, {"mail", 1}}
			ctx, meta := context.Background(), h.prefix+":{mail}:meta"
			h.rdb.HSet(ctx, meta, "paused", "1") // so that no token is pushed
			mail := h.do(work{}, queue.JobOptions{Queue: "mail"})
			if tt.every == 0 {
				h.doMany(20_000, tt.each, queue.JobOptions{Queue: "bulk"})
			}
			h.startWorking(c)
			busy := func(until func() bool) {
				for !until() {
					if tt.every > 0 {
						h.do(tt.each, queue.JobOptions{Queue: "bulk"})
					}
					pass(max(tt.every, 10*time.Millisecond))
				}
			}
			begun := time.Now()
			busy(func() bool { return time.Since(begun) > 1500*time.Millisecond })
			h.rdb.HDel(ctx, meta, "paused")
			resumed := time.Now()
			busy(func() bool { return len(h.ledger.starts(mail)) > 0 || time.Since(resumed) > 20*time.Second })
			if took := time.Since(resumed); took > 4*time.Second {
				t.Errorf("the job ran %v after its queue went on, want about 1 s", took.Round(time.Millisecond))
			}
		})
	}
}

// Strict order: an earlier queue that cannot be exchanged with holds back nobody.
func TestBrokenQueueDoesNotStarveTheOthers(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c := h.config("n1")
	c.Strict, c.Queues = true, []Queue{{"first", 1}, {"second", 1}}
	h.do(work{}, queue.JobOptions{Queue: "first"})
	h.rdb.Set(context.Background(), h.prefix+":{first}:active", "x", 0)
	h.startWorking(c)
	for range 10 {
		asked := time.Now()
		id := h.do(work{}, queue.JobOptions{Queue: "second"})
		eventually(t, patience, "it runs", func() bool { return len(h.ledger.starts(id)) == 1 })
		if took := time.Since(asked); took > 2*time.Second {
			t.Errorf("a job of the sound queue ran after %v", took.Round(time.Millisecond))
		}
		pass(200 * time.Millisecond)
	}
}

// Jobs that killed their nodes stand before a sound one; they are put aside, and
// that costs the sound one no second each.
func TestRiskyJobsPutAsideDoNotHoldUpTheQueue(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c := h.config("n1")
	c.Workers, c.Queues = 2, []Queue{{"default", 1}, {"other", 1}}
	for range 10 {
		id := h.do(work{Sleep: time.Minute})
		h.rdb.HSet(context.Background(), h.prefix+":{default}:tries", id, "2 2 0 0")
	}
	sound := h.do(work{})
	asked := time.Now()
	h.startWorking(c)
	eventually(t, patience, "the sound job runs", func() bool { return len(h.ledger.starts(sound)) == 1 })
	if took := time.Since(asked); took > 2*time.Second {
		t.Errorf("the sound job ran after %v", took.Round(time.Millisecond))
	}
}
