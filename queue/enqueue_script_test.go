package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestJobsRunInOrderOfPriorityAndThenOfArrival(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		for i, p := range []int{5, 0, 9, 5, 9, 3} {
			s.add(JobOptions{ID: fmt.Sprintf("%d-%d", p, i), Priority: Priority(p)})
		}
		const want = "9-2 9-4 5-0 5-3 3-5 0-1"
		s.wantWaiting(want)
		if got := ids(s.claim(s.session("n-1"), 6)); got != want {
			t.Errorf("claimed %q, want %q", got, want)
		}
	})
}

func TestAJobKeepsWhatTheCallerSaid(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		o := JobOptions{ID: "j", Queue: q, Delay: 1500 * time.Microsecond, Priority: Priority(0), MaxAttempts: 7,
			Backoff: Backoff{Exponential, 20 * time.Millisecond, time.Minute}, Timeout: 90 * time.Second, Retention: time.Hour}
		s.add(o)
		r := s.record("j")
		want := Record{ID: "j", Kind: "k", Queue: q, State: Delayed, MaxAttempts: 7, EnqueuedAt: noon, DueAt: noon.Add(2 * time.Millisecond),
			Timeout: o.Timeout, Retention: o.Retention, Backoff: o.Backoff, Payload: []byte("payload of j"), PayloadSize: 12}
		if fmt.Sprintf("%+v", r) != fmt.Sprintf("%+v", want) {
			t.Errorf("got  %+v\nwant %+v", r, want)
		}
		plain := s.add(JobOptions{})
		head, _, _ := strings.Cut(s.rdb.HGet(s.ctx, s.key("jobs"), plain).Val(), "\n")
		if len(head) > 52 {
			t.Errorf("the header %q has %d bytes, want at most 52", head, len(head))
		}
	})
}

func TestAChosenIDIsKnownUntilTenMinutesAfterTheEnd(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-1")
		again := func(want error) {
			t.Helper()
			if _, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "j"}}); !errors.Is(err, want) {
				t.Fatalf("the second enqueue gave %v, want %v", err, want)
			}
		}
		s.add(JobOptions{ID: "j"})
		again(ErrExists) // waiting
		c := s.one(n)
		again(ErrExists) // active
		s.settle(n, c.Settle("n", nil))
		again(ErrExists) // completed
		if r := s.record("j"); r.State != Completed || !r.Forgotten || r.PayloadSize != 0 || !r.FinishedAt.Equal(s.now) {
			t.Errorf("after the end: %+v, want its header only", r)
		}
		s.pass(10*time.Minute - time.Millisecond)
		s.trim(epoch)
		again(ErrExists)
		s.pass(time.Millisecond)
		s.trim(epoch)
		if n := s.conserved(); n != 0 {
			t.Errorf("%d bodies are left, want none", n)
		}
		again(nil)
		s.wantWaiting("j")
	})
}

// trim sweeps until there is nothing more.
func (s *space) trim(epoch int64) (all Trimmed) {
	s.t.Helper()
	for range 100 {
		r, err := s.c.Trim(s.ctx, q, epoch, all.Next)
		s.ok(err)
		all.Forgotten, all.Swept, all.Next = all.Forgotten+r.Forgotten, all.Swept+r.Swept, r.Next
		all.Dropped = append(all.Dropped, r.Dropped...)
		if r.Forgotten+r.Swept+len(r.Dropped) == 0 && r.Next == (TrimCursor{"0", "0", "0"}) {
			return all
		}
	}
	s.t.Fatal("trim does not come to an end")
	return all
}

func TestAGeneratedIDLeavesNothingBehind(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		id := s.add(JobOptions{})
		s.settle(n, s.one(n).Settle("n", nil))
		if s.state(id) != "" || s.conserved() != 0 {
			t.Errorf("the completed job is still there: %v", s.state(id))
		}
		if got := s.totals(); got.Enqueued != 1 || got.Completed != 1 || got.Claimed != 1 {
			t.Errorf("totals %+v", got)
		}
	})
}

func TestRetentionKeepsTheWholeJobUntilItIsOver(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-1")
		id := s.add(JobOptions{Retention: time.Minute})
		s.settle(n, s.one(n).Settle("n", errors.New("once")))
		s.pass(2 * time.Second)
		s.settle(n, s.one(n).Settle("n", nil))
		r := s.record(id)
		if r.State != Completed || r.Forgotten || string(r.Payload) != "payload of " || r.ErrorCount != 1 || !r.FinishedAt.Equal(s.now) {
			t.Errorf("kept %+v", r)
		}
		s.pass(time.Minute)
		if got := s.trim(epoch); got.Forgotten != 1 || s.state(id) != "" || s.rdb.HLen(s.ctx, s.key("tries")).Val() != 0 {
			t.Errorf("after its retention: %+v, %v", got, s.state(id))
		}
	})
}

func TestAShortRetentionDoesNotShortenTheMemoryOfAChosenID(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		job := JobOptions{Queue: q, Retention: time.Second}
		for _, job.ID = range []string{"completed", "cancelled", "reclaimed"} {
			s.add(job)
		}
		got := s.claim(n, 2)
		s.ok(s.rdb.SAdd(s.ctx, s.key("cancels"), "cancelled", "reclaimed").Err())
		s.settle(n, got[0].Settle("n", nil), got[1].Settle("n", nil))
		s.one(s.session("n-2"))
		s.reclaim(epoch, "n-2")
		for id, want := range map[string]State{"completed": Completed, "cancelled": Cancelled, "reclaimed": Cancelled} {
			if r := s.record(id); r.State != want || r.Forgotten || len(r.Payload) == 0 || !r.FinishedAt.Equal(s.now) {
				t.Errorf("after the end: %+v, want all of it", r)
			}
		}
		s.pass(10*time.Minute - time.Millisecond)
		s.trim(epoch)
		for _, job.ID = range []string{"completed", "cancelled", "reclaimed"} {
			if _, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: job}); !errors.Is(err, ErrExists) {
				t.Errorf("%s again within ten minutes of its end: %v", job.ID, err)
			}
		}
		s.pass(time.Millisecond)
		s.trim(epoch)
		if n := s.conserved(); n != 0 {
			t.Errorf("%d bodies are left after ten minutes", n)
		}
	})
}

func TestTwinsInOneBatchCountOnce(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		one := Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "twin"}}
		r := s.c.EnqueueMany(s.ctx, []Request{one, {Kind: "k", JobOptions: JobOptions{Queue: q, ID: "other"}}, one})
		if r[0].Err != nil || r[1].Err != nil || !errors.Is(r[2].Err, ErrExists) {
			t.Errorf("results %v", r)
		}
		s.wantWaiting("twin other")
		if got := s.totals().Enqueued; got != 2 {
			t.Errorf("counted %d, want 2", got)
		}
	})
}

func TestARepeatedTurnGetsTheOutcomesOfTheFirstTime(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.tap.keep = true
		s.add(JobOptions{ID: "first"})
		first := s.tap.last(t, "enqueue")
		s.c.EnqueueMany(s.ctx, []Request{
			{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "first"}}, {Kind: "k", JobOptions: JobOptions{Queue: q, ID: "second"}}})
		second := s.tap.last(t, "enqueue")
		before := s.snapshot()
		if r := s.tap.again(t, s.rdb, second); r.word() != "OK" || r.str(2) != "EO" {
			t.Errorf("the last turn again: %v, want its outcomes EO", r)
		}
		if r := s.tap.again(t, s.rdb, first); r.word() != "STALE" {
			t.Errorf("an older turn: %v, want STALE", r)
		}
		s.pass(5 * time.Minute)
		if r := s.tap.again(t, s.rdb, second); r.word() != "OK" {
			t.Errorf("after 5 min: %v, want OK still", r)
		}
		s.pass(time.Millisecond)
		if r := s.tap.again(t, s.rdb, second); r.word() != "OLD" {
			t.Errorf("after more than 5 min: %v, want OLD", r)
		}
		s.unchanged(before)
	})
}

func TestAnOldCommandIsRefusedLongBeforeItsSenderIsForgotten(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.tap.keep = true
		id := s.add(JobOptions{})
		late := s.tap.last(t, "enqueue")
		n, epoch := s.session("n-1"), s.epoch("n-1")
		s.settle(n, s.one(n).Settle("n", nil))
		s.pass(20*time.Minute + time.Millisecond)
		if got := s.trim(epoch); got.Swept == 0 || s.rdb.HLen(s.ctx, s.key("senders")).Val() != 0 {
			t.Errorf("the idle sender is still known: %+v", got)
		}
		if r := s.tap.again(t, s.rdb, late); r.word() != "OLD" || s.state(id) != "" {
			t.Errorf("a copy of 20 min ago: %v, job %q; want OLD and no job", r, s.state(id))
		}
	})
}

func TestAClientThatSleptAsksForTheTimeAgain(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("a")
		s.pass(time.Hour) // Redis's clock steps, or the client slept: the age in hand is too old
		_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "b"}})
		if !errors.Is(err, ErrUnknown) || !IsUnknown(err) {
			t.Errorf("got %v, want an unknown result", err)
		}
		s.wantState("b", "")
		s.adds("b") // that answer told the time
	})
}

func TestDueTimesAreNeverEarly(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-1")
		s.setTime(noon.Add(999 * time.Microsecond))
		s.add(JobOptions{ID: "delay", Delay: time.Microsecond})
		s.add(JobOptions{ID: "at", At: noon.Add(time.Nanosecond)})
		s.add(JobOptions{ID: "past", At: noon.Add(-time.Hour), Priority: Priority(9)})
		s.wantWaiting("past")
		if r := s.record("past"); !r.DueAt.Equal(noon.Add(-time.Hour)) {
			t.Errorf("due %v, want what was asked for", r.DueAt)
		}
		if p := s.promote(epoch); p.Moved != 0 || p.Next != time.Millisecond {
			t.Errorf("promoted %+v, want none and the next in 1 ms", p)
		}
		s.setTime(noon.Add(time.Millisecond))
		if p := s.promote(epoch); p.Moved != 2 || p.Next >= 0 {
			t.Errorf("promoted %+v, want both", p)
		}
		s.wantWaiting("past at delay")
	})
}

func TestTokensAreOneAtMost(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		sizes := func(wake, poke int64) {
			t.Helper()
			if w, p := s.rdb.LLen(s.ctx, s.key("wake")).Val(), s.rdb.LLen(s.ctx, s.key("poke")).Val(); w != wake || p != poke {
				t.Errorf("%d wake and %d poke tokens, want %d and %d", w, p, wake, poke)
			}
		}
		s.adds("a", "b")
		sizes(1, 0)
		s.add(JobOptions{Delay: time.Minute})
		sizes(1, 1)
		if got, err := s.c.AwaitPoke(s.ctx, []string{"other", q}, time.Second); got != q || err != nil {
			t.Errorf("poked by %q, %v", got, err)
		}
		s.add(JobOptions{Delay: time.Hour}) // not the earliest
		sizes(1, 0)
		s.add(JobOptions{Delay: time.Second})
		s.add(JobOptions{Delay: time.Millisecond})
		sizes(1, 1)
		if got, err := s.c.AwaitWake(s.ctx, []string{"other", q}, time.Second); got != q || err != nil {
			t.Errorf("woken by %q, %v", got, err)
		}
		n := s.session("n-1")
		s.claim(n, 1) // one of two: who took the token passes it on
		sizes(1, 1)
		s.rdb.Del(s.ctx, s.key("wake"))
		s.claim(n, 1) // the last: nothing waits, so nobody is woken
		sizes(0, 1)
	})
}
