package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestATurnThatIsNotHigherDoesNothing(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.tap.keep = true
		n := s.session("n-1")
		s.adds("a", "b")
		c := s.one(n)
		first := s.tap.last(t, "exchange")
		s.settle(n, c.Settle("n", nil))
		before := s.snapshot()
		for _, late := range []copied{first, s.tap.last(t, "exchange")} {
			if r := s.tap.again(t, s.rdb, late); r.word() != "STALE" {
				t.Errorf("a late copy got %v", r)
			}
		}
		twin := s.session("n-1") // counts from one again
		if _, err := twin.Exchange(s.ctx, q, Exchange{Want: 5}); !errors.Is(err, ErrStale) {
			t.Errorf("a lower turn got %v", err)
		}
		s.unchanged(before)
		s.wantWaiting("b")
	})
}

func TestFencesRiseAndAreDistinctWithinABatch(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		last := int64(0)
		for round := range 4 { // Redis's clock stands still in one round and goes back in the next
			s.adds(fmt.Sprint("a", round), fmt.Sprint("b", round), fmt.Sprint("c", round))
			for _, c := range s.claim(n, 3) {
				if c.Fence <= last {
					t.Errorf("fence %d after %d", c.Fence, last)
				}
				if token := fmt.Sprintf("%d n-1", c.Fence); c.Token() != token || s.rdb.HGet(s.ctx, s.key("active"), c.ID).Val() != token {
					t.Errorf("token %q, want %q", c.Token(), token)
				}
				last = c.Fence
			}
			if round == 2 {
				s.pass(-time.Second)
			}
		}
	})
}

func TestAGoneSessionSettlesAndNeverClaims(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-2")
		s.adds("a", "b", "c")
		got := s.claim(n, 2)
		if r, err := s.c.Reclaim(s.ctx, q, epoch, "n-1", "n", nil); err != nil || r.Jobs() != 0 {
			t.Fatalf("the mark alone: %+v, %v", r, err)
		}
		x := s.exchange(n, Exchange{Settle: []*Settlement{got[0].Settle("n", nil)}, Want: 5})
		if !x.Gone || len(x.Claims) != 0 || x.Verdicts[0] != Settled {
			t.Errorf("after the mark: %+v", x)
		}
		if r := s.reclaim(epoch, "n-1"); r.Waiting != 1 {
			t.Errorf("reclaimed %+v, want the one that it still held", r)
		}
		s.wantWaiting("b c")
		if mark := s.rdb.HGet(s.ctx, s.key("holders"), "n-1").Val(); mark != fmt.Sprint("gone ", s.now.UnixMilli()) {
			t.Errorf("mark %q", mark)
		}
	})
}

func TestByeIsTheLastTurn(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		s.adds("a", "b")
		c := s.one(n)
		x := s.exchange(n, Exchange{Settle: []*Settlement{c.Released()}, Want: 5, Bye: true})
		if len(x.Claims) != 0 || x.Gone || x.Verdicts[0] != Settled {
			t.Errorf("bye: %+v", x)
		}
		if x := s.exchange(n, Exchange{Want: 5}); !x.Gone || len(x.Claims) != 0 {
			t.Errorf("after bye: %+v", x)
		}
		s.wantWaiting("a b")
	})
}

func TestPausedQueuesAndLimitsHoldClaimsBack(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		s.adds("a", "b", "c", "d")
		s.ok(s.rdb.HSet(s.ctx, s.key("meta"), "limit", 3).Err())
		got := s.claim(n, 10)
		if ids(got) != "a b c" {
			t.Errorf("claimed %q with a limit of 3", ids(got))
		}
		s.rdb.Del(s.ctx, s.key("wake"))
		if x := s.exchange(n, Exchange{Want: 10}); len(x.Claims) != 0 || s.rdb.LLen(s.ctx, s.key("wake")).Val() != 0 {
			t.Errorf("at the limit: %d claims, and a token that helps nobody", len(x.Claims))
		}
		x := s.exchange(n, Exchange{Settle: []*Settlement{got[0].Settle("n", nil)}, Want: 10})
		if ids(x.Claims) != "d" {
			t.Errorf("after one ended: %q", ids(x.Claims))
		}
		s.ok(s.rdb.HSet(s.ctx, s.key("meta"), "paused", "1").Err())
		s.ok(s.rdb.HDel(s.ctx, s.key("meta"), "limit").Err())
		s.adds("e")
		if x := s.exchange(n, Exchange{Want: 10}); !x.Paused || len(x.Claims) != 0 || x.Backlog != 1 || s.rdb.LLen(s.ctx, s.key("wake")).Val() != 0 {
			t.Errorf("paused: %+v", x)
		}
	})
}

func TestBodiesAreBoundedByBytesButOneJobAlwaysComes(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		for i, size := range []int{1 << 20, 300 << 10, 300 << 10, 500 << 10, 10} {
			_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", Payload: make([]byte, size), JobOptions: JobOptions{Queue: q, ID: fmt.Sprint(i)}})
			s.ok(err)
		}
		for _, want := range []string{"0", "1 2", "3 4", ""} {
			if got := ids(s.claim(n, 10)); got != want {
				t.Errorf("claimed %q, want %q", got, want)
			}
		}
	})
}

func TestOneExchangeNeverGivesMoreThanAThousand(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		many := make([]Request, 1100)
		for i := range many {
			many[i] = Request{Kind: "k", JobOptions: JobOptions{Queue: q}}
		}
		for _, r := range s.c.EnqueueMany(s.ctx, many) {
			s.ok(r.Err)
		}
		if a, b := len(s.claim(n, 1<<40)), len(s.claim(n, 1<<40)); a != 1000 || b != 100 {
			t.Errorf("claimed %d and %d, want 1000 and 100", a, b)
		}
		if got := s.conserved(); got != 1100 {
			t.Errorf("%d jobs, want 1100", got)
		}
	})
}

func TestAJobWithTwoStallsIsClaimedAlone(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("good", "bad1", "bad2", "fresh")
		for _, id := range []string{"bad1", "bad2"} {
			s.ok(s.rdb.HSet(s.ctx, s.key("tries"), id, "2 2 0 0").Err())
		}
		n := s.session("n-1")
		if x := s.exchange(n, Exchange{Want: 10}); ids(x.Claims) != "good fresh" || x.Next != time.Second {
			t.Errorf("not asked for: %q, next %v", ids(x.Claims), x.Next)
		}
		s.wantState("bad1", Delayed)
		if s.rdb.LLen(s.ctx, s.key("poke")).Val() != 1 {
			t.Error("the sweeper is not told of the new due time")
		}
		s.pass(time.Second)
		s.promote(s.epoch("n-9"))
		if x := s.exchange(n, Exchange{Want: 10, Risky: true}); ids(x.Claims) != "bad1" || x.Claims[0].Stalls() != 2 {
			t.Errorf("asked for: %q, want one", ids(x.Claims))
		}
		s.wantState("bad2", Delayed)
		s.conserved()
	})
}

func TestWhatHasSpentItsAttemptsIsNotClaimed(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("spent", "sound")
		s.ok(s.rdb.HSet(s.ctx, s.key("tries"), "spent", "3 0 0 0").Err())
		if got := ids(s.claim(s.session("n-1"), 10)); got != "sound" {
			t.Errorf("claimed %q", got)
		}
		s.wantState("spent", Dead)
		if got := s.totals(); got.Dead != 1 {
			t.Errorf("totals %+v", got)
		}
	})
}

func TestTheExchangeIsANetUnderTheSweeper(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		s.add(JobOptions{ID: "low", Delay: time.Second, Priority: Priority(1)})
		s.add(JobOptions{ID: "second", Delay: 1001 * time.Millisecond})
		s.add(JobOptions{ID: "first", Delay: time.Second})
		s.adds("plain")
		s.pass(1099 * time.Millisecond)
		if x := s.exchange(n, Exchange{}); x.Backlog != 1 || x.Next != 0 {
			t.Errorf("99 ms late is the sweeper's: backlog %d, next %v", x.Backlog, x.Next)
		}
		s.pass(3 * time.Millisecond)
		if got := ids(s.claim(n, 10)); got != "plain first second low" {
			t.Errorf("claimed %q, by class and then by due time", got)
		}
		if got := s.totals(); got.Promoted != 3 {
			t.Errorf("counted %d promotions, want 3", got.Promoted)
		}
	})
}

func TestABrokenPromotionLeavesTheIDTwiceAndTheClaimMendsIt(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.add(JobOptions{ID: "j", Delay: time.Second})
		s.ok(s.rdb.ZAdd(s.ctx, s.key("waiting"), redisZ(1, "j")).Err()) // the second write of promote did not happen
		if got := ids(s.claim(s.session("n-1"), 5)); got != "j" {
			t.Errorf("claimed %q", got)
		}
		s.conserved()
		s.pass(time.Minute)
		if got := ids(s.claim(s.session("n-1-2"), 5)); got != "" {
			t.Errorf("claimed %q again", got)
		}
	})
}

func TestRollCall(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, other := s.session("n-1"), s.session("n-2")
		s.adds("a", "b", "c", "d")
		s.add(JobOptions{ID: "low", Priority: Priority(1)})
		run, lost := s.claim(n, 1), s.claim(n, 2) // the reply of the second never came
		foreign := s.claim(other, 1)
		low := s.claim(n, 1)
		s.exchange(n, Exchange{})
		held, err := n.Held(s.ctx, q)
		s.ok(err)
		if len(held) != 4 || held["a"] != run[0].Token() || held[foreign[0].ID] != "" {
			t.Errorf("held %v", held)
		}
		for _, c := range append(lost, low...) {
			back, err := n.HandBack(s.ctx, q, c.ID, held[c.ID])
			s.ok(err)
			if got := s.settle(n, back); got != "O" {
				t.Errorf("hand-back of %s: %s", c.ID, got)
			}
		}
		s.wantWaiting("c b low")
		still, err := n.Lookup(s.ctx, q, append(run, lost...))
		s.ok(err)
		if fmt.Sprint(still) != "[true false false]" {
			t.Errorf("looked up %v", still)
		}
	})
}

func TestAnExchangeCarriesABoundedNumberOfSettlements(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		s.adds("j")
		c := s.one(n)
		x := Exchange{Settle: []*Settlement{c.Settle("n", nil)}}
		for range MaxSettle {
			x.Settle = append(x.Settle, &Settlement{Verb: VerbRelease, claim: c})
		}
		if _, err := n.Exchange(s.ctx, q, x); !errors.Is(err, ErrBadInput) || !strings.Contains(err.Error(), "500") {
			t.Errorf("501 settlements: %v, want a refusal that names the limit", err)
		}
		s.wantState("j", Active)
		x.Settle = x.Settle[:MaxSettle]
		if out := s.exchange(n, x); out.Verdicts[0] != Settled || out.Verdicts[1] != Stale {
			t.Errorf("500 settlements: %v", out.Verdicts[:2])
		}
	})
}
