package node

import (
	"context"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

func TestHandlerThatIgnoresItsTimeoutKeepsItsSlotAndLosesItsResult(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	release := make(chan struct{})
	c := h.config("n1")
	c.Workers = 1
	n := h.start(c, func(n *Node) {
		n.handle("deaf", func(context.Context, *queue.Claim) error { <-release; return nil })
		n.handle("next", func(context.Context, *queue.Claim) error { return nil })
	})
	deaf := h.enqueue("deaf", "", queue.JobOptions{Timeout: 100 * time.Millisecond, Backoff: queue.Backoff{Base: time.Hour}})
	eventually(t, patience, "it is settled as failed", func() bool { return h.job(deaf).State == queue.Delayed })
	r := h.job(deaf)
	if r.Attempts != 1 || len(r.Errors) != 1 || r.Errors[0].Reason != queue.ReasonTimeout {
		t.Errorf("%+v, want one attempt spent on a time-out", r)
	}
	if used, free := n.pool.active(), n.pool.free(); used != 1 || free != 0 {
		t.Errorf("%d slots used, %d free: want its slot taken until it returns", used, free)
	}
	next := h.enqueue("next", "")
	pass(1500 * time.Millisecond)
	if s := h.job(next).State; s != queue.Waiting {
		t.Errorf("the next job is %s, want waiting: no slot is free", s)
	}
	close(release)
	eventually(t, patience, "the next job runs", func() bool { return h.completed() == 1 })
	if r := h.job(deaf); r.State != queue.Delayed || r.Attempts != 1 {
		t.Errorf("%+v after the late success, want it unchanged", r)
	}
	if got := n.counted(t, "kelpie_overruns_total"); got != 1 {
		t.Errorf("overruns_total is %v, want 1", got)
	}
}

func TestC027UnservedKindWaitsForANodeThatKnowsIt(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	old := h.start(h.config("old"), func(n *Node) {
		Handle(n, raw, func(context.Context, *queue.Job[[]byte]) error { return nil })
	})
	ids := h.doMany(20, work{})
	eventually(t, patience, "all were put aside once", func() bool {
		return old.counted(t, "kelpie_unserved_total") >= 20
	})
	if q := h.queue("default"); q.Dead != 0 || q.Totals.Completed != 0 {
		t.Errorf("%+v, want none dead and none completed", q)
	}
	h.enqueue("raw", "x")
	eventually(t, patience, "what the old node knows runs beside", func() bool { return h.completed() == 1 })
	pass(3 * time.Second)
	claims := h.queue("default").Totals.Claimed
	if claims > 20*3+1 {
		t.Errorf("%d claims of 20 jobs within 3 s, want at most 3 each (after 0, 1 and 3 s)", claims)
	}
	h.startWorking(h.config("new"))
	if err := old.stop(); err != nil {
		t.Error(err)
	}
	eventually(t, patience, "all run where the kind is known", func() bool { return h.completed() == 21 })
	for _, id := range ids {
		if starts := h.ledger.starts(id); len(starts) != 1 || starts[0].node != "new" || starts[0].attempt != 1 {
			t.Errorf("job %s: %v, want one start, of the first attempt, on the new node", id, starts)
		}
	}
}
