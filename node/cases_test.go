package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// Cases from public bug reports, in small; docs/cases.md lists them all.

// The claim is in Redis, its answer is held back, and then the node dies.
func TestC002CrashBetweenClaimAndStart(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	p := startProxy(t, h.url)
	n1 := h.spawn(order{Name: "n1", Redis: p.url(), Workers: 50, Lease: 4 * time.Second})
	h.do(work{})
	eventually(t, patience, "a job ran, so Redis knows the scripts", func() bool { return h.completed() == 1 })
	never := make(chan struct{})
	p.holdReplies(func(request string) <-chan struct{} {
		if isExchange(request) {
			return never
		}
		return nil
	})
	ids := h.doMany(50, work{})
	eventually(t, patience, "n1 holds all of them", func() bool { return h.queue("default").Active == 50 })
	n1.kill()
	for _, id := range ids {
		if r := h.job(id); r.State != queue.Active || queue.NodeName(r.Holder) != "n1" {
			t.Fatalf("%+v right after the kill, want it active with n1 as its holder", r)
		}
	}
	c := h.config("n2")
	c.Lease, c.Workers = 4*time.Second, 50
	h.startWorking(c)
	eventually(t, patience, "all succeed", func() bool { return h.completed() == 51 })
	if q := h.queue("default").Totals; q.Stalled != 50 || q.Failed != 0 || q.Dead != 0 {
		t.Errorf("%+v, want 50 stalled, none failed, none dead", q)
	}
	for _, id := range ids {
		if starts := h.ledger.starts(id); len(starts) != 1 || starts[0].attempt != 2 {
			t.Errorf("job %s: %v, want one start, of the second attempt", id, starts)
		}
	}
}

func TestC012HandlerLongerThanTheLeaseOnAHealthyNode(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	for _, name := range []string{"n1", "n2", "n3"} {
		c := h.config(name)
		c.Lease = 4 * time.Second
		h.startWorking(c)
	}
	ids := h.doMany(20, work{Sleep: 10 * time.Second})
	eventually(t, patience, "all are done", func() bool { return h.completed() == 20 })
	for _, id := range ids {
		if starts := h.ledger.starts(id); len(starts) != 1 {
			t.Errorf("job %s: %v, want one execution", id, starts)
		}
	}
	if q := h.queue("default").Totals; q.Stalled+q.Stale != 0 {
		t.Errorf("%+v, want nothing stalled", q)
	}
}

// A node is paused past its lease and then settles: each way to end an attempt.
func TestC013ZombieAckOfAPausedNodeIsRefused(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	h := realHerd(t)
	n1 := h.spawn(order{Name: "n1", Lease: lease})
	slow := h.do(work{Deaf: 8 * time.Second})
	fails := h.do(work{Deaf: 8 * time.Second, Fail: 1})
	eventually(t, patience, "n1 runs them", func() bool { return len(h.ledger.holds("n1")) == 2 })
	n1.signal(syscall.SIGSTOP)
	h.spawn(order{Name: "n2", Lease: lease})
	eventually(t, patience, "n2 runs them", func() bool { return len(h.ledger.holds("n2")) == 2 })
	n1.signal(syscall.SIGCONT)
	eventually(t, patience, "n1's handlers end, late", func() bool { return len(h.ledger.of("end", "", "n1")) == 2 })
	eventually(t, patience, "its results are refused", func() bool { return h.queue("default").Totals.Stale == 2 })
	if r := h.job(slow); r.State != queue.Active || queue.NodeName(r.Holder) != "n2" {
		t.Errorf("%+v after the late settlement, want it still with n2", r)
	}
	eventually(t, patience, "n2 ends both", func() bool { return h.completed() == 2 })
	for _, id := range []string{slow, fails} {
		if ends := h.ledger.ends(id); len(ends) != 2 {
			t.Errorf("job %s ended %v, want once on each", id, ends)
		}
	}
	h.doMany(100, work{})
	eventually(t, patience, "100 further jobs are done", func() bool { return h.completed() == 102 })
	eventually(t, patience, "n1 takes new jobs", func() bool { h.do(work{}); return len(h.ledger.of("start", "", "n1")) > 2 })
	if q := h.queue("default").Totals; q.Failed != 0 || q.Stale != 2 {
		t.Errorf("%+v, want the two late results refused and nothing failed", q)
	}
}

func TestC018DelayLongerThanTheLease(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c := h.config("")
	c.Lease = 4 * time.Second
	start := func(name string) *started { c.Name = name; return h.startWorking(c) }
	nodes := []*started{start("n1"), start("n2"), start("n3")}
	id := h.do(work{}, queue.JobOptions{Delay: 12 * time.Second})
	due := h.job(id).DueAt
	for i, n := range nodes { // a restart of each meanwhile
		if err := n.stop(); err != nil {
			t.Error(err)
		}
		start(fmt.Sprint("m", i))
	}
	eventually(t, patience, "it is done", func() bool {
		if r, err := h.client.Job(context.Background(), "default", id); err == nil && r.State != queue.Delayed && h.redisTime().Before(due) {
			t.Errorf("%s before its due time", r.State)
		}
		return h.completed() == 1
	})
	if starts := h.ledger.starts(id); len(starts) != 1 || starts[0].at.Before(due) {
		t.Errorf("%v, want one start, not before %v", starts, due)
	}
}

// One node's link to Redis swallows everything while its gossip works.
func TestC020CutOffNodeStopsItsHandlersBeforeAnotherStartsThem(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	h := realHerd(t)
	p := startProxy(t, h.url)
	h.spawn(order{Name: "n1", Redis: p.url(), Lease: lease})
	id := h.do(work{Sleep: time.Minute})
	eventually(t, patience, "n1 runs it", func() bool { return len(h.ledger.holds("n1")) == 1 })
	h.spawn(order{Name: "n2", Lease: lease})
	h.awaitHerd(2)
	p.cut()
	cut := time.Now()
	eventually(t, patience, "n2 runs it", func() bool { return len(h.ledger.holds("n2")) == 1 })
	ends := h.ledger.of("end", id, "n1")
	if len(ends) != 1 || ends[0].result != "session" {
		t.Fatalf("n1 ended it as %v, want it cancelled since its session may be lost", ends)
	}
	began := h.ledger.of("start", id, "n2")[0].at
	t.Logf("n1's handler was cancelled after %v, n2 began after %v", ends[0].at.Sub(cut).Round(time.Millisecond), began.Sub(cut).Round(time.Millisecond))
	if ends[0].at.After(began) || ends[0].at.Sub(cut) > lease {
		t.Error("the two attempts overlap")
	}
	p.heal()
	eventually(t, patience, "n1 takes new jobs", func() bool { h.do(work{}); return len(h.ledger.of("start", "", "n1")) > 1 })
}

// The answers to settlements get lost: half of them at first, then none.
func TestC030LostAnswerToARetryMakesNoSecondCopy(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	p := startProxy(t, h.url)
	c := h.config("n1")
	c.Redis = p.url()
	h.startWorking(c)
	h.do(work{})
	eventually(t, patience, "a job ran, so Redis knows the scripts", func() bool { return h.completed() == 1 })
	var settled, lost atomic.Int64
	never := make(chan struct{})
	p.holdReplies(func(request string) <-chan struct{} {
		if !isExchange(request) || !strings.Contains(request, "\r\nR\r\n") {
			return nil
		}
		if n := settled.Add(1); n%2 == 1 && n < 8 {
			lost.Add(1)
			return never
		}
		return nil
	})
	const jobs, attempts = 10, 4
	ids := h.doMany(jobs, work{Fail: 100}, queue.JobOptions{MaxAttempts: attempts, Backoff: queue.Backoff{Growth: queue.Constant, Base: 100 * time.Millisecond}})
	eventually(t, 3*patience, "all are dead", func() bool { return h.queue("default").Dead == jobs })
	for _, id := range ids {
		if starts, r := h.ledger.starts(id), h.job(id); len(starts) != attempts || r.Attempts != attempts || r.Stalls != 0 {
			t.Errorf("job %s started %d times, its record says %d attempts and %d stalls: want %d, %d and 0", id, len(starts), r.Attempts, r.Stalls, attempts, attempts)
		}
	}
	if q := h.queue("default"); q.Waiting+q.Delayed+q.Active != 0 || q.Totals.Stale != 0 {
		t.Errorf("%+v, want one copy of each, among the dead", q)
	}
	if lost.Load() < 2 {
		t.Errorf("%d of %d answers were lost, too few to show anything", lost.Load(), settled.Load())
	}
}

func TestC035DeathOfANodeIsNoFailureOfTheHandler(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	n1 := h.spawn(order{Name: "n1"})
	once := h.do(work{Sleep: 20 * time.Second}, queue.JobOptions{MaxAttempts: 1})
	twice := h.do(work{Sleep: 200 * time.Millisecond, Deaf: time.Minute, Fail: 2}, queue.JobOptions{MaxAttempts: 2})
	eventually(t, patience, "n1 runs both", func() bool { return len(h.ledger.holds("n1")) == 2 })
	h.start(h.config("n2"), func(n *Node) {
		Handle(n, workKind, func(ctx context.Context, j *queue.Job[work]) error { // the same job, sooner done
			appendTo(h.ledger.path, "start", j.Info, "n2", "-")
			if j.In.Fail > 0 {
				return errWork
			}
			return nil
		})
	})
	h.awaitHerd(2)
	n1.kill()
	eventually(t, patience, "both are dead", func() bool { return h.queue("default").Dead == 2 })
	if r := h.job(once); r.Failures != 0 || r.Stalls != 1 || r.Errors[0].Reason != queue.ReasonStalled || len(h.ledger.starts(once)) != 1 {
		t.Errorf("%+v, want it dead by one stall, without a failure, after one start", r)
	}
	if r := h.job(twice); r.Failures != 1 || r.Stalls != 1 || r.Errors[0].Reason != queue.ReasonFailed || len(h.ledger.starts(twice)) != 2 {
		t.Errorf("%+v, want one stall and one failure, after two starts", r)
	}
	if got := h.client.Revive(context.Background(), "default", []string{once}); got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	eventually(t, patience, "one command brings it back", func() bool { return h.completed() == 1 })
}

// A job kills its process each time it runs, beside innocent ones; a supervisor
// starts the node again.
func TestC037PoisonJobTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	dir := t.TempDir()
	o := order{Name: "n1", StateDir: dir, Workers: 20}
	poison := h.do(work{Exit: 100})
	var innocent []string
	for _, d := range []time.Duration{5, 100, 300, 700} {
		innocent = append(innocent, h.doMany(25, work{Sleep: d * time.Millisecond})...)
	}
	starts := 0
	for h.poisoned(poison) {
		if starts++; starts > 6 {
			t.Fatalf("the node died %d times", starts)
		}
		n := h.spawn(o)
		eventually(t, 2*patience, "the node dies, or the poison is dead", func() bool {
			select {
			case <-n.ended:
				return true
			default:
				return !h.poisoned(poison)
			}
		})
	}
	eventually(t, 2*patience, "the innocent are done", func() bool { return h.completed() == 100 })
	r := h.job(poison)
	t.Logf("the poison died after %d stalls and %d starts of the node", r.Stalls, starts)
	if r.Stalls != 3 || r.Failures != 0 || r.Errors[0].Reason != queue.ReasonStalled {
		t.Errorf("%+v, want it dead after three stalls", r)
	}
	if q := h.queue("default"); q.Dead != 1 || q.Totals.Failed != 0 {
		t.Errorf("%+v, want the poison alone among the dead", q)
	}
	for _, id := range innocent {
		if ends := h.ledger.ends(id); !slices.ContainsFunc(ends, func(e entry) bool { return e.result == "ok" }) {
			t.Errorf("job %s: %v, want it done", id, ends)
		}
	}
}

// poisoned reports that the job is not dead yet.
func (h *herd) poisoned(id string) bool { return h.job(id).State != queue.Dead }

func TestC038RevivedJobHasAllItsAttemptsAnew(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	var runs atomic.Int64
	h.start(h.config("n1"), func(n *Node) {
		Handle(n, raw, func(context.Context, *queue.Job[[]byte]) error {
			if runs.Add(1) <= 4 {
				return errWork
			}
			return nil
		})
	})
	quick := queue.Backoff{Growth: queue.Constant, Base: 10 * time.Millisecond}
	id := h.enqueue("raw", "x", queue.JobOptions{Backoff: quick, Timeout: time.Second, Retention: time.Hour})
	eventually(t, patience, "it is dead", func() bool { return h.job(id).State == queue.Dead })
	pass(1500 * time.Millisecond) // longer than its timeout
	if got := h.client.Revive(context.Background(), "default", []string{id}); got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	eventually(t, patience, "it fails once more and then succeeds", func() bool { return h.job(id).State == queue.Completed })
	if runs.Load() != 5 {
		t.Errorf("it ran %d times, want 3 and then 2", runs.Load())
	}
}
