package queue

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestC008: the job is removed while it runs; what its handler says after brings
// nothing back.
func TestC008ALateEndBringsNothingBack(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		for name, err := range map[string]error{"ok": nil, "fails": errBroke, "discards": Discard(errBroke), "snoozes": Snooze(time.Second)} {
			for _, retention := range []time.Duration{0, time.Hour} {
				id := fmt.Sprint(name, retention)
				s.add(JobOptions{ID: id, Retention: retention})
				c := s.one(n)
				s.ok(s.rdb.HDel(s.ctx, s.key("jobs"), id).Err()) // removed, with its entry
				s.ok(s.rdb.HDel(s.ctx, s.key("active"), id).Err())
				if v := s.settle(n, c.Settle("n", err)); v != "S" {
					t.Errorf("%s: verdict %s", id, v)
				}
				s.wantState(id, "")
				s.add(JobOptions{ID: id})
				c = s.one(n)
				if c.ID != id || c.Attempt != 1 {
					t.Errorf("enqueued again it runs as %s, attempt %d", c.ID, c.Attempt)
				}
				s.ok(s.rdb.HDel(s.ctx, s.key("jobs"), id).Err()) // its body alone
				if v := s.settle(n, c.Settle("n", nil)); v != "O" {
					t.Errorf("%s without a body: verdict %s", id, v)
				}
				s.wantState(id, "")
			}
		}
		if s.conserved() != 0 {
			t.Error("something is left")
		}
	})
}

// TestC010: bodies that nobody can read, in every living place.
func TestC010WhatCannotBeReadDoesNotStopItsNeighbours(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		poison := map[string]string{"empty": "", "brace": "{", "deep": strings.Repeat("[", 100_000), "types": "1 k x y z\n{}",
			"random": strings.Repeat("\x00\xff\n ", 100_000), "newline": "\n", "negative": "1 k -3 77 1\n"}
		for id, body := range poison {
			s.ok(s.rdb.HSet(s.ctx, s.key("jobs"), id, body, id+"-d", body, id+"-a", body).Err())
			s.ok(s.rdb.ZAdd(s.ctx, s.key("waiting"), redisZ(0, id)).Err())
			s.ok(s.rdb.ZAdd(s.ctx, s.key("delayed"), redisZ(0, id+"-d")).Err())
			s.ok(s.rdb.HSet(s.ctx, s.key("active"), id+"-a", "1 dead-1").Err())
		}
		for i := range 20 {
			s.adds(fmt.Sprint("good", i))
		}
		s.reclaim(epoch, "dead-1")
		s.promote(epoch)
		good := 0
		for round := 0; ; round++ {
			claims := s.claim(n, 20)
			if len(claims) == 0 {
				break
			}
			x := Exchange{}
			for _, c := range claims {
				if strings.HasPrefix(c.ID, "good") {
					good++
					x.Settle = append(x.Settle, c.Settle("n", nil))
					continue
				}
				if c.Broken() == nil {
					t.Errorf("%s is not seen as broken", c.ID)
				}
				x.Settle = append(x.Settle, c.Settle("n", Undecodable(c.Broken())))
			}
			s.exchange(n, x)
			s.pass(time.Minute)
			s.promote(epoch)
			if round > 20 {
				t.Fatal("it never ends")
			}
		}
		if good != 20 {
			t.Errorf("%d of 20 good jobs ran", good)
		}
		for id := range poison {
			for _, id := range []string{id, id + "-d", id + "-a"} {
				r := s.record(id)
				if r.State != Dead || r.Broken == "" || len(r.Errors) == 0 || r.Errors[0].Reason != ReasonUndecodable && r.Errors[0].Reason != ReasonStalled {
					t.Errorf("%s: %s, %q, %v", id, r.State, r.Broken, r.Errors)
				}
			}
		}
		for r, err := range s.c.Jobs(s.ctx, q, Dead) {
			s.ok(err)
			if r.Broken == "" {
				t.Errorf("%s is listed as sound", r.ID)
			}
		}
		s.conserved()
	})
}

// TestC013: a node is paused beyond its lease; each thing that it says after is
// refused, and it goes on with other jobs.
func TestC013AZombieChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		zombie, heir := s.session("n-1"), s.session("n-2")
		s.beat(Beat{Session: "n-1"})
		s.adds("j")
		old := s.one(zombie)
		seen, _, _ := s.c.LastBeat(s.ctx, "n-1")
		if v, err := s.c.Condemn(s.ctx, "n-1", seen); v != Done || err != nil {
			t.Fatal(v, err)
		}
		s.reclaim(epoch, "n-1")
		mine := s.one(heir)
		before := s.rdb.HGet(s.ctx, s.key("active"), "j").Val()
		for _, late := range []*Settlement{old.Settle("n", nil), old.Settle("n", errBroke), old.Released()} {
			if x := s.exchange(zombie, Exchange{Settle: []*Settlement{late}, Want: 3}); x.Verdicts[0] != Stale || !x.Gone || len(x.Claims) != 0 {
				t.Errorf("%v: %+v", late.Verb, x)
			}
		}
		if _, err := s.c.Beat(s.ctx, Beat{Session: "n-1"}); !errors.Is(err, ErrGone) {
			t.Errorf("its beat: %v", err)
		}
		if got := s.rdb.HGet(s.ctx, s.key("active"), "j").Val(); got != before {
			t.Errorf("the owner changed from %s to %s", before, got)
		}
		if v := s.settle(heir, mine.Settle("n", nil)); v != "O" {
			t.Errorf("the heir: %s", v)
		}
		again := s.session("n-1-b") // the node starts over with a new session
		for i := range 100 {
			s.adds(fmt.Sprint("next", i))
		}
		if got := len(s.claim(again, 100)); got != 100 {
			t.Errorf("it goes on with %d jobs", got)
		}
	})
}

// TestC015: the list of what a dead session held is stale when it is used.
func TestC015AStaleListReclaimsNothingThatEnded(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		n, other := s.session("n-1"), s.session("n-2")
		s.adds("ended", "kept", "back", "held")
		s.add(JobOptions{ID: "retained", Retention: time.Hour})
		claims := s.claim(n, 5)
		var stale []string
		for id, err := range s.c.HeldBy(s.ctx, q, "n-1") {
			s.ok(err)
			stale = append(stale, id)
		}
		s.settle(n, claims[0].Settle("n", nil), claims[1].Settle("n", errBroke), claims[2].Released(), claims[4].Settle("n", nil))
		s.one(other) // "back" is another's now
		r, err := s.c.Reclaim(s.ctx, q, epoch, "n-1", "n", stale)
		if err != nil || r.Jobs() != 1 || r.Waiting != 1 {
			t.Errorf("reclaimed %+v, %v; want the one that is still held", r, err)
		}
		for id, want := range map[string]State{"ended": Completed, "kept": Delayed, "back": Active, "held": Waiting, "retained": Completed} {
			s.wantState(id, want)
		}
		if got := s.totals().Stalled; got != 1 {
			t.Errorf("%d stalls", got)
		}
	})
}

// TestC016: a claim is whole in the moment when it is there; sweeps for other
// sessions never see a job without its owner.
func TestC016NothingIsReclaimedBetweenClaimAndLease(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		n := s.session("n-1")
		stop, done := make(chan struct{}), make(chan int)
		go func() {
			moved := 0
			for {
				r, err := s.c.Audit(s.ctx, q, epoch)
				if err != nil {
					t.Error(err)
				}
				holders := s.c.Holders(s.ctx, []string{q})[0]
				if holders.Err != nil {
					t.Error(holders.Err)
				}
				for _, h := range holders.Sessions {
					if h != "n-1" {
						t.Errorf("a holder %q that claimed nothing", h)
					}
				}
				moved += r.Orphans + r.Strays
				select {
				case <-stop:
					done <- moved
					return
				default:
				}
			}
		}()
		for range 40 {
			ids := make([]Request, 5)
			for i := range ids {
				ids[i] = Request{Kind: "k", JobOptions: JobOptions{Queue: q}}
			}
			s.c.EnqueueMany(s.ctx, ids)
			x := Exchange{}
			for _, c := range s.claim(n, 5) {
				x.Settle = append(x.Settle, c.Settle("n", nil))
			}
			s.exchange(n, x)
		}
		close(stop)
		if moved := <-done; moved != 0 || s.totals().Stalled != 0 || s.totals().Completed != 200 {
			t.Errorf("%d moved; totals %+v", moved, s.totals())
		}
	})
}

// TestC018: a delay longer than any lease is not unacknowledged work.
func TestC018ALongDelayIsNotALease(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		s.add(JobOptions{ID: "j", Delay: 6 * time.Hour})
		for i := range 6 { // a node comes, is restarted and reclaimed, each hour
			name := fmt.Sprint("n-", i)
			if got := s.claim(s.session(name), 5); len(got) != 0 {
				t.Fatalf("hour %d: claimed %s", i, ids(got))
			}
			s.reclaim(epoch, name)
			s.promote(epoch)
			s.trim(epoch)
			s.wantState("j", Delayed)
			s.pass(time.Hour)
		}
		s.promote(epoch)
		if c := s.one(s.session("n-z")); c.Attempt != 1 || c.Stalls() != 0 {
			t.Errorf("attempt %d after %d stalls", c.Attempt, c.Stalls())
		}
	})
}

func TestC035ADeadNodeIsNoFailureOfTheHandler(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		s.add(JobOptions{ID: "once", MaxAttempts: 1})
		s.claim(s.session("n-1"), 1)
		s.reclaim(epoch, "n-1")
		if r := s.record("once"); r.State != Dead || r.Failures != 0 || r.Stalls != 1 || r.Errors[0].Reason != ReasonStalled {
			t.Errorf("with one attempt: %+v", r)
		}
		s.ok(s.c.Revive(s.ctx, q, []string{"once"})[0].Err)
		n := s.session("n-2")
		s.settle(n, s.one(n).Released()) // a graceful stop
		if r := s.record("once"); r.State != Waiting || r.Attempts != 0 {
			t.Errorf("handed back: %+v", r)
		}
		s.settle(n, s.one(n).Settle("n", nil))
		s.add(JobOptions{ID: "twice", MaxAttempts: 2})
		s.claim(s.session("n-3"), 1)
		s.reclaim(epoch, "n-3")
		s.settle(n, s.one(n).Settle("n", errBroke))
		if r := s.record("twice"); r.State != Dead || r.Failures != 1 || r.Stalls != 1 || r.Errors[0].Reason != ReasonFailed {
			t.Errorf("with two attempts: %+v", r)
		}
	})
}

// TestC037: one job kills each process that runs it, together with all that runs
// beside it; no innocent one is dead at the end.
func TestC037APoisonJobTakesNobodyAlong(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-z")
		s.adds("poison")
		for i := range 30 {
			s.adds(fmt.Sprint("good", i))
		}
		deaths := 0
		for round := 0; s.rdb.ZCard(s.ctx, s.key("waiting")).Val()+s.rdb.ZCard(s.ctx, s.key("delayed")).Val() > 0; round++ {
			if round > 100 {
				t.Fatal("it never ends")
			}
			name := fmt.Sprint("n-", round)
			n := s.session(name)
			x := s.exchange(n, Exchange{Want: 50, Risky: true})
			var ends []*Settlement
			for _, c := range x.Claims {
				if c.ID == "poison" {
					ends = nil
					deaths++
					s.reclaim(epoch, name)
					break
				}
				ends = append(ends, c.Settle("n", nil))
			}
			if ends != nil {
				s.settle(n, ends...)
			}
			s.pass(5 * time.Second)
			s.promote(epoch)
		}
		if got := s.totals(); deaths != 3 || got.Dead != 1 || got.Completed != 30 {
			t.Errorf("%d processes died; totals %+v", deaths, got)
		}
		s.wantState("poison", Dead)
	})
}

func TestC038ARevivedJobHasAllItsAttempts(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		s.add(JobOptions{ID: "j", Timeout: time.Minute})
		fail := func() {
			t.Helper()
			s.settle(n, s.one(n).Settle("n", RetryIn(0, errBroke)))
			s.promote(epoch)
		}
		fail()
		fail()
		fail()
		s.wantState("j", Dead)
		s.pass(24 * time.Hour)
		s.exchange(n, Exchange{}) // tells the client the time
		s.ok(s.c.Revive(s.ctx, q, []string{"j"})[0].Err)
		fail()
		s.wantState("j", Waiting)
		if c := s.one(n); c.Attempt != 2 || c.Timeout != time.Minute {
			t.Errorf("attempt %d, timeout %v", c.Attempt, c.Timeout)
		}
	})
}

// TestC034: a producer at the edge repeats its call under the id that it chose,
// from many processes at once, and once with another payload.
func TestC034TheSameChosenIDFromManyProducersIsOneJob(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		var stored, known atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				c, err := New(s.rdb, Options{Prefix: s.c.Prefix()}) // a sender of its own
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = c.Close() }()
				switch id, err := c.Enqueue(s.ctx, Request{Kind: "k", Payload: []byte("first"), JobOptions: JobOptions{Queue: q, ID: "order-17"}}); {
				case err == nil && id == "order-17":
					stored.Add(1)
				case errors.Is(err, ErrExists):
					known.Add(1)
				default:
					t.Errorf("%q, %v", id, err)
				}
			})
		}
		wg.Wait()
		if stored.Load() != 1 || known.Load() != 99 || s.conserved() != 1 {
			t.Errorf("%d stored and %d refused, want 1 and 99", stored.Load(), known.Load())
		}
		_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", Payload: []byte("second"), JobOptions: JobOptions{Queue: q, ID: "order-17"}})
		if r := s.record("order-17"); !errors.Is(err, ErrExists) || string(r.Payload) != "first" {
			t.Errorf("another payload under a known id: %v, and the job has %q", err, r.Payload)
		}
	})
}
