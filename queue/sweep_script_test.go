package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAReclaimedJobGoesToTheHeadOfItsClassAndCountsAStall(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		s.adds("a", "b", "c")
		s.add(JobOptions{ID: "low", Priority: Priority(1)})
		s.claim(s.session("web-1-abc"), 4)
		s.adds("d")
		if r := s.reclaim(epoch, "web-1-abc"); r.Waiting != 4 || r.Jobs() != 4 {
			t.Errorf("reclaimed %+v", r)
		}
		list := strings.Fields(s.waiting())
		if len(list) != 5 || list[3] != "d" || list[4] != "low" {
			t.Errorf("waiting %v: want the three, then d, then low", list)
		}
		r := s.record("a")
		if r.Stalls != 1 || r.Attempts != 1 || r.Failures != 0 || len(r.Errors) != 1 {
			t.Fatalf("record %+v", r)
		}
		if f := r.Errors[0]; f.Reason != ReasonStalled || f.Node != "web-1" || f.Attempt != 1 || !f.At.Equal(s.now) || !strings.Contains(f.Error, "died") {
			t.Errorf("failure %+v", f)
		}
		if got := s.totals(); got.Stalled != 4 || got.Failed != 0 {
			t.Errorf("totals %+v", got)
		}
	})
}

func TestLaterStallsWaitAndTheLastOneIsTheEnd(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		s.adds("j")
		for stall, want := range []State{Waiting, Delayed, Dead} {
			name := fmt.Sprint("n-", stall)
			if c := s.one(s.session(name)); c.Attempt != stall+1 || c.Stalls() != stall {
				t.Fatalf("attempt %d after %d stalls", c.Attempt, c.Stalls())
			}
			s.reclaim(epoch, name)
			s.wantState("j", want)
			if want == Delayed {
				if d := s.record("j").DueAt.Sub(s.now); d != 4*time.Second {
					t.Errorf("waits %v after two stalls, want 4 s", d)
				}
				s.pass(4 * time.Second)
				s.promote(epoch)
			}
		}
		if r := s.record("j"); r.Stalls != 3 || r.Failures != 0 || r.ErrorCount != 3 || r.Errors[0].Reason != ReasonStalled {
			t.Errorf("at the end %+v", r)
		}
	})
}

func TestReclaimTakesOnlyWhatTheSessionHolds(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		s.adds("dead", "alive", "ended", "waiting")
		gone, lives := s.session("n-1"), s.session("n-1-1") // one name is the end of none, but the start of the other
		s.claim(gone, 1)
		s.claim(lives, 1)
		s.settle(gone, s.one(gone).Settle("n", nil))
		r, err := s.c.Reclaim(s.ctx, q, epoch, "n-1", "n", []string{"dead", "alive", "ended", "waiting", "never", "dead"})
		if err != nil || r.Waiting != 1 || r.Jobs() != 1 {
			t.Errorf("reclaimed %+v, %v; want one", r, err)
		}
		s.wantWaiting("dead waiting")
		s.wantState("alive", Active)
		s.wantState("ended", Completed)
		if got := s.record("dead"); got.Stalls != 1 {
			t.Errorf("named twice, it has %d stalls", got.Stalls)
		}
		if r := s.reclaim(epoch, "n-1"); r.Jobs() != 0 {
			t.Errorf("again: %+v, want nothing", r)
		}
		s.conserved()
	})
}

func TestAnOlderEpochIsFencedAndMovesNothing(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		old := s.epoch("n-1")
		s.adds("a", "b")
		s.add(JobOptions{Delay: time.Second})
		s.claim(s.session("n-3"), 1)
		s.pass(time.Minute)
		young := s.epoch("n-2")
		if young <= old {
			t.Fatalf("epoch %d after %d", young, old)
		}
		if p := s.promote(old); p.Moved != 1 {
			t.Errorf("before the new one has come the old one works: %+v", p)
		}
		s.add(JobOptions{Delay: time.Second})
		s.promote(young)
		s.pass(time.Minute)
		before := s.snapshot()
		calls := map[string]func() error{
			"promote": func() error { _, err := s.c.Promote(s.ctx, q, old); return err },
			"reclaim": func() error { _, err := s.c.Reclaim(s.ctx, q, old, "n-3", "n", []string{"a"}); return err },
			"trim":    func() error { _, err := s.c.Trim(s.ctx, q, old, TrimCursor{}); return err },
			"repair": func() error {
				_, err := s.c.sweep(s.ctx, repairScript, q, []any{old, "a"})
				return err
			},
		}
		for name, call := range calls {
			fenced := (*FencedError)(nil)
			if err := call(); !errors.As(err, &fenced) || fenced.Seen != young || IsUnknown(err) {
				t.Errorf("%s by the old one: %v, want fenced by %d", name, err, young)
			}
		}
		s.unchanged(before)
		if p := s.promote(young); p.Moved != 1 {
			t.Errorf("the new one: %+v", p)
		}
	})
}

func TestRaiseNeedsTheWholeLockAndGoesAboveWhatWasSeen(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		lock := strings.Repeat("t", lockToken) + "n-1"
		if _, err := s.c.Raise(s.ctx, lock, 0); !errors.Is(err, ErrLockLost) {
			t.Errorf("nobody holds it: %v", err)
		}
		s.ok(s.rdb.Set(s.ctx, s.c.SweeperKey(), lock, 0).Err())
		for _, other := range []string{lock[:lockToken], lock + "x", lock[1:], ""} {
			if _, err := s.c.Raise(s.ctx, other, 0); !errors.Is(err, ErrLockLost) {
				t.Errorf("with %q: %v", other, err)
			}
		}
		first, err := s.c.Raise(s.ctx, lock, 0)
		s.ok(err)
		if first != s.now.UnixMicro() {
			t.Errorf("epoch %d, want Redis's time", first)
		}
		second, err := s.c.Raise(s.ctx, lock, 0)
		s.ok(err)
		third, err := s.c.Raise(s.ctx, lock, second+1000)
		s.ok(err)
		if second != first+1 || third != second+1001 {
			t.Errorf("epochs %d %d %d", first, second, third)
		}
		s.pass(-time.Hour)
		if fourth, err := s.c.Raise(s.ctx, lock, 0); err != nil || fourth != third+1 {
			t.Errorf("after a clock step back: %d, %v", fourth, err)
		}
	})
}

func TestPromotionIsByDueTimeWithinAClassAndBounded(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		for i := range 5 {
			s.add(JobOptions{ID: fmt.Sprint("p5-", 4-i), Delay: time.Duration(5-i) * time.Second})
			s.add(JobOptions{ID: fmt.Sprint("p9-", 4-i), Delay: time.Duration(5-i) * time.Second, Priority: Priority(9)})
		}
		s.pass(time.Minute)
		if p := s.promote(epoch); p.Moved != 10 || p.Next >= 0 {
			t.Errorf("promoted %+v", p)
		}
		s.wantWaiting("p9-0 p9-1 p9-2 p9-3 p9-4 p5-0 p5-1 p5-2 p5-3 p5-4")
		many := make([]Request, 150)
		for i := range many {
			many[i] = Request{Kind: "k", JobOptions: JobOptions{Queue: q, Delay: time.Second}}
		}
		s.c.EnqueueMany(s.ctx, many)
		s.pass(time.Second)
		if a, b := s.promote(epoch), s.promote(epoch); a.Moved != 100 || a.Next != 0 || b.Moved != 50 || b.Next >= 0 {
			t.Errorf("promoted %+v, then %+v", a, b)
		}
		if got := s.totals(); got.Promoted != 160 {
			t.Errorf("totals %+v", got)
		}
	})
}

func TestTrimNeverTouchesALivingJob(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		for _, id := range []string{"active", "waiting", "ended"} {
			s.adds(id)
			s.ok(s.rdb.ZAdd(s.ctx, s.key("completed"), redisZ(1, id)).Err()) // a place of a former life
		}
		s.add(JobOptions{ID: "delayed", Delay: time.Hour})
		s.ok(s.rdb.ZAdd(s.ctx, s.key("cancelled"), redisZ(1, "delayed")).Err())
		if c := s.one(n); c.ID != "active" {
			t.Fatal(c.ID)
		}
		s.ok(s.rdb.ZRem(s.ctx, s.key("waiting"), "ended").Err())
		if got := s.trim(epoch); got.Forgotten != 1 {
			t.Errorf("trimmed %+v, want the ended one", got)
		}
		s.wantState("ended", "")
		s.wantState("active", Active)
		s.wantState("waiting", Waiting)
		s.wantState("delayed", Delayed)
		if got := s.conserved(); got != 3 {
			t.Errorf("%d jobs, want 3", got)
		}
	})
}

func TestTrimKeepsABoundedNumberOfDeadAndDropsTheOldest(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		var all []string
		for range 5 {
			all = append(all, s.add(JobOptions{}))
			s.settle(n, s.one(n).Settle("n", Discard(errBroke)))
			s.pass(time.Second)
		}
		if got := s.dropDead(epoch, 3); fmt.Sprint(got.list(3)) != fmt.Sprint(all[:2]) || got.int(2) != 2 {
			t.Errorf("dropped %v, forgot %d; want the two oldest", got.list(3), got.int(2))
		}
		if got := s.totals(); got.Dropped != 2 || got.Dead != 5 || s.conserved() != 3 {
			t.Errorf("totals %+v", got)
		}
		if got := s.rdb.HLen(s.ctx, s.key("tries")).Val(); got != 3 {
			t.Errorf("%d tries, want 3", got)
		}
	})
}

// dropDead trims with a lower bound on the dead than MaxDead.
func (s *space) dropDead(epoch int64, most int) reply {
	s.t.Helper()
	r, err := s.c.sweep(s.ctx, trimScript, q, []any{epoch, most, "0", "0", "0"})
	s.ok(err)
	return r
}

func TestADroppedJobLeavesItsChosenIDForTenMinutes(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		var died time.Time
		for _, id := range []string{"old", "fresh"} {
			s.add(JobOptions{ID: id, Retention: time.Hour}) // of completed ones: the dead have none
			s.settle(n, s.one(n).Settle("n", Discard(errBroke)))
			died = s.now
			s.pass(8 * time.Minute)
			s.trim(epoch) // the client hears the time
		}
		if got := s.dropDead(epoch, 0); fmt.Sprint(got.list(3)) != "[old fresh]" || got.int(2) != 2 || s.totals().Dropped != 2 {
			t.Errorf("dropped %v, forgot %d", got.list(3), got.int(2))
		}
		s.wantState("old", "")
		if r := s.record("fresh"); r.State != Completed || !r.Forgotten || r.PayloadSize != 0 || r.ErrorCount != 0 || !r.FinishedAt.Equal(died) {
			t.Errorf("dropped 8 minutes after its end: %+v, want its header", r)
		}
		s.conserved()
		s.pass(2*time.Minute - time.Millisecond)
		s.trim(epoch)
		if _, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "fresh"}}); !errors.Is(err, ErrExists) {
			t.Errorf("its id again within ten minutes of its end: %v", err)
		}
		s.pass(time.Millisecond)
		s.trim(epoch)
		if n := s.conserved(); n != 0 {
			t.Errorf("%d bodies are left", n)
		}
	})
}

func TestTrimForgetsOldMarksAndMinutes(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		s.adds("j")
		s.exchange(s.session("n-gone"), Exchange{Bye: true})
		s.exchange(s.session("n-lives"), Exchange{})
		s.pass(time.Hour)
		s.trim(epoch)
		if got := s.rdb.HLen(s.ctx, s.key("holders")).Val(); got != 2 {
			t.Errorf("%d holders after an hour, want both", got)
		}
		s.pass(time.Millisecond)
		s.trim(epoch)
		if got := s.rdb.HKeys(s.ctx, s.key("holders")).Val(); fmt.Sprint(got) != "[n-lives]" {
			t.Errorf("holders %v", got)
		}
		if got := s.rdb.HGetAll(s.ctx, s.key("minutes")).Val(); len(got) != 1 {
			t.Errorf("minutes %v", got)
		}
		s.pass(24 * time.Hour)
		s.trim(epoch)
		if got := s.rdb.HGetAll(s.ctx, s.key("minutes")).Val(); len(got) != 0 {
			t.Errorf("minutes %v after a day", got)
		}
	})
}
