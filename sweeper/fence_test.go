package sweeper

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// tenancy is a tenure that believes in itself until it resigns.
type tenancy struct {
	value  string
	epoch  atomic.Int64
	cancel context.CancelCauseFunc
}

func (f *tenancy) Value() string          { return f.value }
func (f *tenancy) Valid() bool            { return true }
func (f *tenancy) SetEpoch(epoch int64)   { f.epoch.Store(epoch) }
func (f *tenancy) Resign(cause error)     { f.cancel(cause) }
func lockValue(token, node string) string { return (token + strings.Repeat("0", 22))[:22] + node }

// occupy runs a term of n under the belief that value is in the lock. done is
// closed when it is over; cause tells why.
func (n *node) occupy(value string) (cause func() error, stop func()) {
	ctx, cancel := context.WithCancelCause(n.w.ctx)
	var wg sync.WaitGroup
	wg.Go(func() { n.serve(ctx, &tenancy{value: value, cancel: cancel}) })
	stop = func() {
		cancel(context.Canceled)
		wg.Wait()
		n.waiters.Wait()
	}
	n.w.t.Cleanup(stop)
	return func() error { return context.Cause(ctx) }, stop
}

// C148: a leader that was paused longer than the lock lasts, and goes on.
func TestC148AStaleSweeperIsFencedAndResigns(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.must(w.client.Register(w.ctx, "q"))
		stale, next := w.node("n1-a"), w.node("n2-b")
		w.must(w.rdb.Set(w.ctx, w.client.SweeperKey(), lockValue("old", "n1-a"), 0).Err())
		over, _ := stale.occupy(lockValue("old", "n1-a"))
		w.pass(2 * time.Second)
		stale.line.breakBy(func(string) error { return errors.New("stopped") }) // neither sees nor does anything
		w.must(w.rdb.Set(w.ctx, w.client.SweeperKey(), lockValue("new", "n2-b"), 0).Err())
		next.occupy(lockValue("new", "n2-b"))
		w.pass(9 * time.Second)
		promoted := stale.Stats().Promoted
		epoch, err := w.rdb.HGet(w.ctx, w.key("q", "meta"), "epoch").Int64()
		w.must(err)
		w.enqueue("q", 50, queue.JobOptions{Delay: 500 * ms})
		stale.line.breakBy(nil)
		w.pass(time.Second)
		if cause := over(); !errors.As(cause, new(*queue.FencedError)) {
			t.Errorf("a second after it woke its cause to resign is %v", cause)
		}
		s := stale.Stats()
		if s.Promoted != promoted || s.Fenced == 0 || s.Sweeping {
			t.Errorf("the stale one did something: %+v", s)
		}
		if got := next.Stats(); got.Promoted != 50 || got.Epoch != epoch {
			t.Errorf("the next one: %+v, epoch in the queue %d", got, epoch)
		}
	})
}

// A queue may have seen a higher epoch than Redis remembers, after a roll-back.
func TestWhoStillHasTheLockGoesOnWithAHigherEpoch(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		id := w.enqueue("q", 1, queue.JobOptions{Delay: ms})[0]
		seen := time.Now().Add(time.Hour).UnixMicro()
		w.must(w.rdb.HSet(w.ctx, w.key("q", "meta"), "epoch", seen).Err())
		n := w.node("n1-a").start()
		w.pass(2 * time.Second)
		s := n.Stats()
		if !s.Sweeping || s.Fenced == 0 || s.Epoch <= seen || s.Tenures != 1 {
			t.Errorf("%+v, seen %d", s, seen)
		}
		if got := w.state("q", id); got != queue.Waiting {
			t.Errorf("it is %s", got)
		}
	})
}

func TestATermWithoutTheLockNeverBegins(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a")
		over, _ := n.occupy(lockValue("none", "n1-a"))
		w.pass(time.Second)
		if !errors.Is(over(), queue.ErrLockLost) || n.line.calls("promote") != 0 {
			t.Errorf("cause %v, %d promotions", over(), n.line.calls("promote"))
		}
	})
}

// Two sweepers on purpose: both believe in the same lock, so each raises its
// epoch above the other's for ever, and both act all the time.
func TestTwoSweepersAtOnceAreHarmless(t *testing.T) {
	w := onRedis(t)
	value := lockValue("both", "n1-a")
	w.must(w.rdb.Set(w.ctx, w.client.SweeperKey(), value, 0).Err())
	queues := []string{"a", "b", "c"}
	ids := map[string][]string{}
	for _, q := range queues {
		w.register("dead-" + q)
		ids[q] = w.enqueue(q, 300, queue.JobOptions{})
		w.claim("dead-"+q, q, 300)
		_, err := w.client.Condemn(w.ctx, "dead-"+q, w.beatOf("dead-"+q))
		w.must(err)
		for d := range 10 {
			ids[q] = append(ids[q], w.enqueue(q, 60, queue.JobOptions{Delay: time.Duration(100+d*50) * ms})...)
		}
	}
	one, two := w.node("n1-a"), w.node("n2-b")
	_, stopOne := one.occupy(value)
	_, stopTwo := two.occupy(value)
	w.eventually("all is done", 15*time.Second, func() bool {
		for _, q := range queues {
			if i := w.info(q); i.Waiting != 900 || i.Delayed+i.Active != 0 {
				return false
			}
		}
		return true
	})
	stopOne()
	stopTwo()
	a, b := one.Stats(), two.Stats()
	if got := a.Promoted + b.Promoted; got != 1800 {
		t.Errorf("%d promotions of 1800 jobs", got)
	}
	if got := a.Reclaimed + b.Reclaimed; got != 900 {
		t.Errorf("%d reclaims of 900 jobs", got)
	}
	if a.Fenced+b.Fenced == 0 {
		t.Error("they never met")
	}
	for _, q := range queues {
		w.conserved(q, ids[q])
		if i := w.info(q); i.Totals.Stalled != 300 || i.Totals.Promoted != 600 {
			t.Errorf("%s: %+v", q, i.Totals)
		}
	}
}

func (w *world) beatOf(session string) int64 {
	w.t.Helper()
	beat, _, err := w.client.LastBeat(w.ctx, session)
	w.must(err)
	return beat
}
