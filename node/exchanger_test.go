package node

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// The answer to a claim gets lost: Redis says that this node holds the job, and
// nobody runs it.
func TestRollCallFindsWhatALostAnswerClaimed(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	p := startProxy(t, h.url)
	c := h.config("n1")
	c.Redis = p.url()
	h.startWorking(c)
	h.do(work{})
	eventually(t, patience, "a job ran, so Redis knows the scripts", func() bool { return h.completed() == 1 })
	var lost atomic.Int64
	never := make(chan struct{})
	p.holdReplies(func(request string) <-chan struct{} {
		if isExchange(request) && h.queue("default").Waiting > 0 && lost.CompareAndSwap(0, 1) {
			return never
		}
		return nil
	})
	var ids []string
	for round := 0; lost.Load() == 0; round++ { // a claim may have been on its way before there was a job to be seen
		if round == 100 {
			t.Fatal("no answer was lost")
		}
		ids = append(ids, h.doMany(5, work{})...)
		eventually(t, patience, "all are done", func() bool { return int(h.completed()) == 1+len(ids) })
	}
	for _, id := range ids {
		if starts := h.ledger.starts(id); len(starts) != 1 || starts[0].attempt != 1 {
			t.Errorf("job %s: %v, want one start, of the first attempt", id, starts)
		}
	}
}

// An entry of active vanishes (a roll-back of Redis): who runs the job is told.
func TestHandlerWhoseClaimIsGoneIsCancelled(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	h.startWorking(h.config("n1"))
	id := h.do(work{Sleep: time.Minute})
	eventually(t, patience, "it runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	h.rdb.HDel(context.Background(), h.prefix+":{default}:active", id)
	eventually(t, patience, "its handler is cancelled", func() bool { return len(h.ledger.ends(id)) == 1 })
	if ends := h.ledger.ends(id); ends[0].result != "session" {
		t.Errorf("%v, want it ended by the lost claim", ends)
	}
}

// A mark in cancels reaches a node without a free slot.
func TestCancelReachesAFullNode(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c := h.config("n1")
	c.Workers = 1
	h.startWorking(c)
	id := h.do(work{Sleep: time.Minute}, queue.JobOptions{Retention: time.Hour})
	eventually(t, patience, "it runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	h.rdb.SAdd(context.Background(), h.prefix+":{default}:cancels", id)
	eventually(t, patience, "it is cancelled", func() bool { return h.job(id).State == queue.Cancelled })
	if ends := h.ledger.ends(id); len(ends) != 1 || ends[0].result != "job" {
		t.Errorf("%v, want its handler ended because the job was cancelled", ends)
	}
	if q := h.queue("default").Totals; q.Cancelled != 1 || q.Failed+q.Completed != 0 {
		t.Errorf("%+v, want one cancelled and nothing else", q)
	}
}

func TestPausedQueueGivesNothingAndGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	h.startWorking(h.config("n1"))
	ctx, meta := context.Background(), h.prefix+":{default}:meta"
	h.do(work{})
	eventually(t, patience, "a job runs", func() bool { return h.completed() == 1 })
	h.rdb.HSet(ctx, meta, "paused", "1")
	h.doMany(5, work{})
	pass(2 * time.Second)
	if q := h.queue("default"); q.Waiting != 5 || q.Totals.Completed != 1 {
		t.Errorf("%+v, want 5 waiting while the queue is paused", q)
	}
	h.rdb.HDel(ctx, meta, "paused")
	eventually(t, patience, "they run", func() bool { return h.completed() == 6 })
}

// One queue keeps all slots busy; another one that was empty gets its share.
func TestQueueThatWasEmptyGetsItsShareOfAFullNode(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c := h.config("n1")
	c.Workers, c.Queues = 4, []Queue{{"bulk", 1}, {"mail", 3}}
	h.startWorking(c)
	h.doMany(400, work{Sleep: 50 * time.Millisecond}, queue.JobOptions{Queue: "bulk"})
	eventually(t, patience, "bulk fills the node", func() bool { return h.queue("bulk").Totals.Completed > 10 })
	asked := time.Now()
	mails := h.doMany(20, work{Sleep: 50 * time.Millisecond}, queue.JobOptions{Queue: "mail"})
	eventually(t, patience, "the mails are done", func() bool { return h.queue("mail").Totals.Completed == int64(len(mails)) })
	t.Logf("20 mails were done %v after they came, %d of bulk still wait", time.Since(asked).Round(time.Millisecond), h.queue("bulk").Waiting)
	if h.queue("bulk").Waiting == 0 {
		t.Error("the mails waited until bulk was done")
	}
}

func TestStrictOrderServesTheFirstQueueFirst(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c := h.config("n1")
	c.Workers, c.Strict, c.Queues = 2, true, []Queue{{"first", 1}, {"second", 9}}
	h.doMany(30, work{}, queue.JobOptions{Queue: "second"})
	first := h.doMany(30, work{Sleep: 20 * time.Millisecond}, queue.JobOptions{Queue: "first"})
	firsts := len(first)
	h.startWorking(c)
	eventually(t, patience, "the first queue is done", func() bool { return h.queue("first").Totals.Completed == 30 })
	early := 0
	for _, s := range h.ledger.of("start", "", "") {
		if slices.Contains(first, s.id) {
			firsts--
		} else if firsts > 0 {
			early++
		}
	}
	if early > 5 { // before it was known that the first has work
		t.Errorf("%d jobs of the second queue were started before the first was empty", early)
	}
	eventually(t, patience, "the second queue is done too", func() bool { return h.queue("second").Totals.Completed == 30 })
}

// A roll call of an idle queue leaves it idle, else every queue would be called
// every 10 s for ever.
func TestIdleQueueStaysIdle(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	in := h.lone(t, h.config("n1"))
	e := in.exchangers[0]
	e.rollCall.Store(true)
	e.round(context.Background())
	if e.rollCall.Load() || e.used.Load() {
		t.Error("the roll was not called, or it counts as use")
	}
	h.do(work{Sleep: time.Second})
	e.round(context.Background())
	if !e.used.Load() {
		t.Error("a claim does not count as use")
	}
	in.cancelAll(queue.ErrShutdown)
	eventually(t, patience, "the handler ends", func() bool { return in.active() == 0 })
}

// A settlement counted, its answer was lost, and it is sent again: refused, but
// not lost.
func TestSettlementSentTwiceIsNotCalledLost(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	p := startProxy(t, h.url)
	c := h.config("n1")
	c.Redis = p.url()
	n := h.startWorking(c)
	h.do(work{})
	eventually(t, patience, "a job ran", func() bool { return h.completed() == 1 })
	id := h.do(work{Sleep: 300 * time.Millisecond})
	eventually(t, patience, "another runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	never := make(chan struct{})
	p.holdReplies(func(request string) <-chan struct{} {
		if isExchange(request) && h.completed() < 2 {
			return never
		}
		return nil
	})
	eventually(t, patience, "it is settled", func() bool { return h.completed() == 2 })
	last := h.do(work{})
	eventually(t, patience, "the node goes on", func() bool { return len(h.ledger.starts(last)) == 1 && h.completed() == 3 })
	if got := n.counted(t, "kelpie_stale_total"); got != 0 {
		t.Errorf("stale_total is %v, want 0: %+v", got, h.queue("default").Totals)
	}
}
