package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRescheduleMovesAJobAndKeepsAllElse(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch := s.epoch("n-9")
		s.add(JobOptions{ID: "j", Priority: Priority(7), MaxAttempts: 9, Timeout: time.Minute, Retention: time.Hour,
			Backoff: Backoff{Constant, time.Second, time.Minute}, Delay: time.Hour})
		before := s.record("j")
		due, err := s.c.Reschedule(s.ctx, q, "j", 2*time.Hour, time.Time{})
		s.ok(err)
		if !due.Equal(noon.Add(2 * time.Hour)) {
			t.Errorf("due %v", due)
		}
		want := before
		want.DueAt = due
		if got := s.record("j"); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		s.rdb.Del(s.ctx, s.key("poke"))
		at := noon.Add(90*time.Second + 500*time.Microsecond)
		if due, err = s.c.Reschedule(s.ctx, q, "j", 0, at); err != nil || !due.Equal(noon.Add(90*time.Second+time.Millisecond)) {
			t.Errorf("at %v: due %v, %v", at, due, err)
		}
		if s.rdb.LLen(s.ctx, s.key("poke")).Val() != 1 {
			t.Error("an earlier due time does not poke the sweeper")
		}
		s.pass(90 * time.Second)
		if p := s.promote(epoch); p.Moved != 0 || p.Next != time.Millisecond {
			t.Errorf("promoted %+v, want nothing yet", p)
		}
		if _, err = s.c.Reschedule(s.ctx, q, "j", 0, time.Time{}); err != nil {
			t.Fatal(err)
		}
		s.wantState("j", Waiting)
		if s.rdb.LLen(s.ctx, s.key("wake")).Val() != 1 {
			t.Error("a job that is due now wakes nobody")
		}
		if _, err = s.c.Reschedule(s.ctx, q, "j", time.Second, time.Time{}); err != nil {
			t.Fatal(err)
		}
		s.wantState("j", Delayed)
		s.conserved()
		if r := s.record("j"); string(r.Payload) != "payload of j" || r.Retention != time.Hour {
			t.Errorf("at the end %+v", r)
		}
	})
}

func TestRescheduleSaysWhyNot(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		s.adds("active", "ended", "dead")
		got := s.claim(n, 3)
		s.settle(n, got[1].Settle("n", nil), got[2].Settle("n", Discard(errBroke)))
		before := s.snapshot()
		for id, want := range map[string]error{"active": ErrWrongState, "ended": ErrWrongState, "dead": ErrWrongState, "never": ErrNoJob, "a b": ErrBadInput, "": ErrBadInput} {
			if _, err := s.c.Reschedule(s.ctx, q, id, time.Second, time.Time{}); !errors.Is(err, want) || errors.Is(err, ErrUnreachable) {
				t.Errorf("%q: %v, want %v", id, err, want)
			}
		}
		for _, d := range []time.Duration{-1, maxWait + 1} {
			if _, err := s.c.Reschedule(s.ctx, q, "active", d, time.Time{}); !errors.Is(err, ErrBadInput) {
				t.Errorf("delay %v: %v", d, err)
			}
		}
		after := s.snapshot()
		before["senders"] = after["senders"]
		s.unchanged(before)
	})
}

func TestAClientCommandIsAppliedOnceHoweverOftenItComes(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.tap.keep = true
		n := s.session("n-1")
		s.adds("j", "dead")
		_, err := s.c.Reschedule(s.ctx, q, "j", time.Minute, time.Time{})
		s.ok(err)
		moved := s.tap.last(t, "reschedule")
		s.settle(n, s.one(n).Settle("n", Discard(errBroke)))
		s.pass(time.Second)
		if r := s.tap.again(t, s.rdb, moved); r.word() != "OK" || r.str(2) != fmt.Sprint("O", noon.Add(time.Minute).UnixMilli()) {
			t.Errorf("reschedule again: %v", r)
		}
		if d := s.record("j").DueAt.Sub(noon); d != time.Minute {
			t.Errorf("due after %v: the repeat moved it", d)
		}
		s.ok(s.c.Revive(s.ctx, q, []string{"dead"})[0].Err)
		revived := s.tap.last(t, "revive")
		s.settle(n, s.one(n).Settle("n", Discard(errBroke)))
		before := s.snapshot()
		if r := s.tap.again(t, s.rdb, revived); r.word() != "OK" || r.str(2) != "O" {
			t.Errorf("revive again: %v", r)
		}
		if r := s.tap.again(t, s.rdb, moved); r.word() != "STALE" {
			t.Errorf("an older turn: %v", r)
		}
		s.pass(5*time.Minute + time.Millisecond)
		for _, c := range []copied{revived, moved} {
			if r := s.tap.again(t, s.rdb, c); r.word() != "OLD" {
				t.Errorf("%s of 5 min ago: %v", c.script, r)
			}
		}
		s.unchanged(before)
	})
}

func TestReviveCountsAnewAndKeepsWhatWentWrong(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		s.add(JobOptions{ID: "j", MaxAttempts: 1})
		s.settle(n, s.one(n).Settle("n", errBroke))
		s.adds("other")
		r := s.c.Revive(s.ctx, q, []string{"j", "j", "other", "never"})
		if r[0].Err != nil || !errors.Is(r[1].Err, ErrNoJob) || !errors.Is(r[2].Err, ErrNoJob) || !errors.Is(r[3].Err, ErrNoJob) {
			t.Errorf("results %v", r)
		}
		s.wantWaiting("other j")
		got := s.record("j")
		if got.Attempts != 0 || got.Failures != 0 || got.Stalls != 0 || got.ErrorCount != 1 || got.Errors[0].Error != "it broke" {
			t.Errorf("revived %+v", got)
		}
		if c := s.claim(n, 2)[1]; c.ID != "j" || c.Attempt != 1 {
			t.Errorf("%s runs as attempt %d", c.ID, c.Attempt)
		}
		if got := s.totals(); got.Revived != 1 || got.Dead != 1 {
			t.Errorf("totals %+v", got)
		}
		if r := s.c.Revive(s.ctx, "no/queue", []string{"j"}); !errors.Is(r[0].Err, ErrBadInput) {
			t.Errorf("a bad name: %v", r[0].Err)
		}
		s.conserved()
	})
}

func TestAuditMendsOrphansAndStrays(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		s.adds("active", "dead", "gone-dead")
		got := s.claim(n, 3)
		s.settle(n, got[1].Settle("n", Discard(errBroke)), got[2].Settle("n", Discard(errBroke)))
		s.adds("waiting", "gone-waiting", "stray", "sound")
		s.add(JobOptions{ID: "gone-delayed", Delay: time.Hour})
		s.add(JobOptions{ID: "high", Priority: Priority(9)})
		s.ok(s.rdb.HDel(s.ctx, s.key("jobs"), "gone-waiting", "gone-delayed", "gone-dead").Err())
		s.ok(s.rdb.ZRem(s.ctx, s.key("waiting"), "stray", "high").Err())
		r, err := s.c.Audit(s.ctx, q, epoch)
		if err != nil || r != (Repaired{Orphans: 3, Strays: 2}) {
			t.Errorf("repaired %+v, %v", r, err)
		}
		if s.conserved() != 6 {
			t.Error("want the six with bodies")
		}
		s.wantState("active", Active)
		s.wantState("dead", Dead)
		if w := s.waiting(); !strings.HasPrefix(w, "high ") || !strings.Contains(w, "stray") {
			t.Errorf("waiting %q", w)
		}
		if left := s.rdb.HKeys(s.ctx, s.key("tries")).Val(); fmt.Sprint(left) != "[dead]" {
			t.Errorf("tries of %v are left", left)
		}
		if got := s.totals(); got.Orphans != 3 || got.Strays != 2 {
			t.Errorf("totals %+v", got)
		}
		before := s.snapshot()
		if r, err := s.c.Audit(s.ctx, q, epoch); err != nil || r != (Repaired{}) {
			t.Errorf("again: %+v, %v", r, err)
		}
		s.unchanged(before)
	})
}

func TestHoldersAreAllThatMayClaimOrStillHold(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("a")
		s.claim(s.session("holds"), 1)
		s.exchange(s.session("idle"), Exchange{})
		s.exchange(s.session("left"), Exchange{Bye: true})
		s.exchange(s.session("holds-1"), Exchange{})
		s.ok(s.rdb.HSet(s.ctx, s.key("holders"), "holds", "gone 1").Err())
		s.ok(s.rdb.Set(s.ctx, s.c.keys.of("odd", "active"), "", 0).Err())
		got := s.c.Holders(s.ctx, []string{q, "odd", "nobody"})
		slices.Sort(got[0].Sessions)
		if fmt.Sprint(got[0].Sessions) != "[holds holds-1 idle]" || got[0].Err != nil {
			t.Errorf("holders %v", got[0])
		}
		if !errors.Is(got[1].Err, ErrWrongType) || len(got[2].Sessions) != 0 || got[2].Err != nil {
			t.Errorf("a queue that cannot be read %v and an empty one %v", got[1], got[2])
		}
	})
}
