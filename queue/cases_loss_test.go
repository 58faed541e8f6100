package queue

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestC001: the promoter stops at any point of a large promotion, and another
// goes on; a script that broke between its two writes is part of it.
func TestC001ThePromoterDiesInTheMiddle(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		const count = 450
		many := make([]Request, count)
		for i := range many {
			many[i] = Request{Kind: "k", JobOptions: JobOptions{Queue: q, Delay: time.Second}}
		}
		s.c.EnqueueMany(s.ctx, many)
		s.pass(time.Second)
		first := s.epoch("n-1")
		s.promote(first)
		torn := s.rdb.ZRange(s.ctx, s.key("delayed"), 0, 0).Val()[0]
		s.ok(s.rdb.ZAdd(s.ctx, s.key("waiting"), redisZ(1e15, torn)).Err())
		second := s.epoch("n-2")
		for s.promote(second).Moved > 0 {
		}
		fenced := (*FencedError)(nil)
		if _, err := s.c.Promote(s.ctx, q, first); !errors.As(err, &fenced) {
			t.Errorf("the first one wakes up: %v", err)
		}
		if n := s.conserved(); n != count || s.rdb.ZCard(s.ctx, s.key("waiting")).Val() != count {
			t.Errorf("%d jobs, %d waiting", n, s.rdb.ZCard(s.ctx, s.key("waiting")).Val())
		}
		ran := map[string]bool{}
		for _, c := range s.claim(s.session("n-3"), count) {
			ran[c.ID] = true
		}
		if len(ran) != count || len(s.claim(s.session("n-4"), count)) != 0 {
			t.Errorf("%d ran", len(ran))
		}
	})
}

// TestC002: the claim is executed, its reply is held, the node dies.
func TestC002TheNodeDiesBetweenClaimAndStart(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		const count = 50
		for i := range count {
			s.adds(fmt.Sprint("j", i))
		}
		epoch := s.epoch("n-9")
		s.claim(s.session("warm-1"), 0)
		c, p := s.through(Options{}, nil, on("evalsha", holdReply, 1))
		n, err := c.Session("n-1")
		s.ok(err)
		died := make(chan error, 1)
		go func() {
			_, err := n.Exchange(s.ctx, q, Exchange{Want: count})
			died <- err
		}()
		within(t, "the claim", p.executed)
		if held := s.rdb.HLen(s.ctx, s.key("active")).Val(); held != count {
			t.Errorf("%d jobs have an owner at once, want %d", held, count)
		}
		if r := s.reclaim(epoch, "n-1"); r.Waiting != count {
			t.Errorf("reclaimed %+v", r)
		}
		p.letGo()
		within(t, "the reply", died)
		young := s.session("n-2")
		x := Exchange{}
		for _, claim := range s.claim(young, count) {
			if r := claim.tries.failures(); claim.Attempt != 2 || r[0].Reason != ReasonStalled {
				t.Errorf("%s: attempt %d, %v", claim.ID, claim.Attempt, r)
			}
			x.Settle = append(x.Settle, claim.Settle("n", nil))
		}
		s.exchange(young, x)
		if got := s.totals(); got.Completed != count || got.Dead != 0 || got.Stalled != count {
			t.Errorf("totals %+v", got)
		}
	})
}

// TestC004: house-keeping runs in a loop while jobs come and go in many queues
// that are empty again and again.
func TestC004HouseKeepingTakesNoLateArrival(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		queues := []string{"q0", "q1", "q2", "q3"}
		stop, swept := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(swept)
			for {
				for _, name := range queues {
					_, _ = s.c.Trim(s.ctx, name, epoch, TrimCursor{})
					_, _ = s.c.Promote(s.ctx, name, epoch)
					if r, err := s.c.Audit(s.ctx, name, epoch); err != nil || r != (Repaired{}) {
						t.Errorf("audit: %+v, %v", r, err)
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		var wg sync.WaitGroup
		for i, name := range queues {
			wg.Go(func() {
				n := s.session(fmt.Sprint("n-", i))
				for range 25 {
					id, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: name}})
					if err != nil {
						t.Error(err)
						return
					}
					x, err := n.Exchange(s.ctx, name, Exchange{Want: 1})
					if err != nil || ids(x.Claims) != id {
						t.Errorf("%s: claimed %v, %v", name, x, err)
						return
					}
					if _, err := n.Exchange(s.ctx, name, Exchange{Settle: []*Settlement{x.Claims[0].Settle("n", nil)}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		close(stop)
		<-swept
	})
}

// TestC006: a bulk revival is cut off and made again.
func TestC006ABulkRevivalIsInterruptedAndMadeAgain(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		const count = 250
		n := s.session("n-1")
		var all []string
		x := Exchange{}
		for i := range count {
			all = append(all, fmt.Sprintf("j%03d", i))
		}
		s.adds(all...)
		for _, c := range s.claim(n, count) {
			x.Settle = append(x.Settle, c.Settle("n", Discard(errBroke)))
		}
		s.exchange(n, x)
		c, p := s.through(Options{Patience: time.Nanosecond}, nil, on("evalsha", loseReply, 2))
		unknown := 0
		for _, r := range c.Revive(s.ctx, q, all) {
			if errors.Is(r.Err, ErrUnknown) {
				unknown++
			} else if r.Err != nil {
				t.Error(r.Err)
			}
		}
		if unknown != ReviveBatch || len(p.executed) != 1 {
			t.Errorf("%d unknown, want one batch", unknown)
		}
		s.conserved()
		for _, r := range s.c.Revive(s.ctx, q, all) {
			if r.Err != nil && !errors.Is(r.Err, ErrNoJob) {
				t.Error(r.Err)
			}
		}
		if n := s.conserved(); n != count || s.rdb.ZCard(s.ctx, s.key("waiting")).Val() != count {
			t.Errorf("%d jobs", n)
		}
		if got := s.totals().Revived; got != count {
			t.Errorf("revived %d, each once is %d", got, count)
		}
	})
}

// TestC007: bodies of ids in every place are gone.
func TestC007AnIDWithoutABodyStopsNobody(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		s.adds("active", "dead", "w1", "w2", "sound1", "sound2", "sound3")
		s.add(JobOptions{ID: "delayed", Delay: time.Second})
		got := s.claim(n, 2)
		s.settle(n, got[1].Settle("n", Discard(errBroke)))
		s.ok(s.rdb.HDel(s.ctx, s.key("jobs"), "active", "dead", "w1", "w2", "delayed").Err())
		s.ok(s.rdb.HSet(s.ctx, s.key("tries"), "w1", "1 0 0 0").Err())
		s.pass(time.Second)
		s.promote(epoch)
		if a, b := ids(s.claim(n, 4)), ids(s.claim(n, 4)); a+" "+b != "sound1 sound2 sound3" {
			t.Errorf("claimed %q, then %q", a, b)
		}
		if got := s.totals().Orphans; got != 3 {
			t.Errorf("%d orphans counted, want each once", got)
		}
		if v := s.settle(n, got[0].Settle("n", nil)); v != "O" {
			t.Errorf("the active one: %s", v)
		}
		s.wantState("active", "")
		for _, id := range []string{"active", "dead", "w1"} {
			if _, err := s.c.Job(s.ctx, q, id); !errors.Is(err, ErrNoJob) {
				t.Errorf("%s: %v", id, err)
			}
			if err := s.c.Revive(s.ctx, q, []string{id})[0].Err; !errors.Is(err, ErrNoJob) {
				t.Errorf("revive %s: %v", id, err)
			}
		}
		if _, err := s.c.Audit(s.ctx, q, epoch); err != nil {
			t.Fatal(err)
		}
		if s.conserved() != 3 || s.rdb.HLen(s.ctx, s.key("tries")).Val() != 0 {
			t.Error("something is left of the dangling ids")
		}
	})
}
