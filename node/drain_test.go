package node

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

func TestSIGTERMFinishesOrHandsBackAndEndsWithZero(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	n := h.spawn(order{Name: "n1", Drain: time.Second})
	short := h.doMany(4, work{Sleep: 700 * time.Millisecond})
	long := h.doMany(4, work{Sleep: time.Minute})
	eventually(t, patience, "all run", func() bool { return len(h.ledger.of("start", "", "")) == 8 })
	n.signal(syscall.SIGTERM)
	eventually(t, patience, "the node drains", func() bool { nodes := h.nodes(); return len(nodes) == 1 && nodes[0].Draining })
	later := h.do(work{})
	if code := n.wait(patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	q := h.queue("default")
	if q.Totals.Completed != int64(len(short)) || q.Waiting != 5 || q.Active != 0 || len(h.nodes()) != 0 {
		t.Errorf("after the exit: %+v and nodes %v, want 4 completed, 5 waiting, none active, no node", q, h.nodes())
	}
	for _, id := range append(long, later) {
		if r := h.job(id); r.State != queue.Waiting || r.Attempts != 0 || r.ErrorCount != 0 {
			t.Errorf("job %s: %+v, want waiting with its attempts untouched", id, r)
		}
	}
	for _, id := range long {
		if ends := h.ledger.ends(id); len(ends) != 1 || ends[0].result != "node" {
			t.Errorf("job %s ended as %v, want once, by the shutdown", id, ends)
		}
	}
}

func TestSecondSignalHandsBackAtOnce(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c, abort := h.config("n1"), make(chan struct{})
	c.Abort, c.DrainTimeout = abort, time.Minute
	n := h.startWorking(c)
	polite, deaf := h.do(work{Sleep: time.Minute}), h.do(work{Deaf: 3 * time.Second})
	eventually(t, patience, "both run", func() bool { return len(h.ledger.of("start", "", "")) == 2 })
	ended := make(chan error, 1)
	go func() { ended <- n.stop() }()
	eventually(t, patience, "the node drains", func() bool { return n.ready() != nil })
	asked := time.Now()
	close(abort)
	if err := <-ended; !errors.Is(err, ErrAborted) {
		t.Errorf("Run returned %v, want ErrAborted", err)
	}
	t.Logf("Run returned %v after the second signal", time.Since(asked).Round(time.Millisecond))
	for _, id := range []string{polite, deaf} {
		if r := h.job(id); r.State != queue.Waiting || r.Attempts != 0 {
			t.Errorf("job %s: %+v, want waiting with its attempts untouched", id, r)
		}
	}
	eventually(t, patience, "the deaf handler ends", func() bool { return len(h.ledger.ends(deaf)) == 1 })
}

func TestSecondSIGTERMEndsTheProcessWithAnError(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	n := h.spawn(order{Name: "n1", Drain: time.Minute})
	id := h.do(work{Sleep: time.Minute})
	eventually(t, patience, "it runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	n.signal(syscall.SIGTERM)
	eventually(t, patience, "the node drains", func() bool { nodes := h.nodes(); return len(nodes) == 1 && nodes[0].Draining })
	n.signal(syscall.SIGTERM)
	if code := n.wait(patience); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if r := h.job(id); r.State != queue.Waiting || r.Attempts != 0 {
		t.Errorf("%+v, want waiting with its attempts untouched", r)
	}
}

// The stop falls into the moment between a claim in Redis and its answer.
func TestJobClaimedWhileTheNodeStopsIsHandedBack(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	p := startProxy(t, h.url)
	c := h.config("n1")
	c.Redis, c.DrainTimeout = p.url(), time.Millisecond
	n := h.startWorking(c)
	h.do(work{})
	eventually(t, patience, "a job ran, so Redis knows the scripts", func() bool { return h.completed() == 1 })
	claims, release := make(chan struct{}, 100), make(chan struct{})
	p.holdReplies(func(request string) <-chan struct{} {
		if isExchange(request) && h.queue("default").Waiting > 0 {
			claims <- struct{}{}
			return release
		}
		return nil
	})
	id := h.do(work{Sleep: time.Minute})
	select {
	case <-claims:
	case <-time.After(patience):
		t.Fatal("nobody claims")
	}
	eventually(t, patience, "the claim counts in Redis", func() bool { return h.job(id).State == queue.Active })
	ended := make(chan error, 1)
	go func() { ended <- n.stop() }()
	eventually(t, patience, "the node hands back", func() bool { return n.current.Load().phase() == phaseHandBack })
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
	if r := h.job(id); r.State != queue.Waiting || r.Attempts != 0 {
		t.Errorf("%+v, want waiting with its attempts untouched", r)
	}
}

func TestStopWithoutRedisEndsAndNamesWhatCouldNotBeHandedBack(t *testing.T) {
	t.Parallel()
	h, server := ownHerd(t)
	c := h.config("n1")
	c.DrainTimeout = 500 * time.Millisecond
	n := h.startWorking(c)
	id := h.do(work{Sleep: time.Minute})
	eventually(t, patience, "it runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	server.Pause()
	began := time.Now()
	err := n.stop()
	t.Logf("Run returned %v after %v", err, time.Since(began).Round(time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("Run returned %v, want the job %s named", err, id)
	}
	server.Resume()
}

func TestSecondSignalAlsoCutsTheWaitForCancelledHandlers(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c, abort := h.config("n1"), make(chan struct{})
	c.Abort, c.DrainTimeout = abort, time.Millisecond
	n := h.startWorking(c)
	id := h.do(work{Deaf: 6 * time.Second})
	eventually(t, patience, "it runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	in := n.current.Load()
	ended := make(chan error, 1)
	go func() { ended <- n.stop() }()
	<-in.handlers.Done()
	asked := time.Now()
	close(abort)
	if err := <-ended; !errors.Is(err, ErrAborted) {
		t.Errorf("Run returned %v, want ErrAborted", err)
	}
	if took := time.Since(asked); took > 3*time.Second {
		t.Errorf("it ended %v after the second signal", took.Round(time.Millisecond))
	}
	eventually(t, patience, "the handler ends", func() bool { return len(h.ledger.ends(id)) == 1 })
}
