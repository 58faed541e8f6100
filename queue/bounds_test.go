package queue

import (
	"bytes"
	"fmt"
	"testing"
)

// big enqueues jobs whose bodies are as large as a script may read in one step.
func (s *space) big(count int) (all []string) {
	s.t.Helper()
	payload := bytes.Repeat([]byte("x"), DefaultMaxPayload)
	for i := range count {
		all = append(all, fmt.Sprint("big", i))
		_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", Payload: payload, JobOptions: JobOptions{Queue: q, ID: all[i]}})
		s.ok(err)
	}
	return all
}

// sent counts the commands that f sends.
func (s *space) sent(f func()) int64 {
	before := s.tap.calls.Load()
	f()
	return s.tap.calls.Load() - before
}

func TestAStepReadsABoundedNumberOfBytes(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		const count = 5
		n, epoch := s.session("n-1"), s.epoch("n-9")
		all := s.big(count)
		for _, id := range all {
			s.claim(n, 1)
			s.wantState(id, Active)
		}
		_, err := s.c.Reclaim(s.ctx, q, epoch, "n-1", "n", nil)
		s.ok(err)
		calls := s.sent(func() {
			if got, err := s.c.Reclaim(s.ctx, q, epoch, "n-1", "n", all); err != nil || got.Waiting != count {
				t.Errorf("reclaimed %+v, %v", got, err)
			}
		})
		if calls < count {
			t.Errorf("%d bodies of 1 MiB were reclaimed in %d steps", count, calls)
		}
		calls = s.sent(func() {
			listed := 0
			for r, err := range s.c.Jobs(s.ctx, q, Waiting) {
				s.ok(err)
				if listed++; r.PayloadSize != DefaultMaxPayload {
					t.Errorf("listed %+v", r)
				}
			}
			if listed != count {
				t.Errorf("listed %d jobs, want %d", listed, count)
			}
		})
		if calls < count {
			t.Errorf("%d bodies of 1 MiB were listed in %d steps", count, calls)
		}
		m := s.session("n-2")
		for range all {
			s.settle(m, s.one(m).Settle("n", Discard(errBroke)))
		}
		calls = s.sent(func() {
			for _, r := range s.c.Revive(s.ctx, q, all) {
				s.ok(r.Err)
			}
		})
		if calls < count {
			t.Errorf("%d bodies of 1 MiB were revived in %d steps", count, calls)
		}
		if s.conserved() != count || s.totals().Revived != count {
			t.Errorf("totals %+v", s.totals())
		}
		s.ok(s.rdb.Del(s.ctx, s.key("waiting")).Err())
		r, err := s.c.sweep(s.ctx, repairScript, q, []any{epoch, all[0], all[1], all[2]})
		s.ok(err)
		if r.int(3) != 1 {
			t.Errorf("%d strays of 1 MiB were repaired in one step, want 1 and the rest later", r.int(3))
		}
	})
}

func TestAMarkGoesWithAnIDThatHasNoBody(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("j")
		s.one(s.session("n-1"))
		s.ok(s.rdb.SAdd(s.ctx, s.key("cancels"), "j").Err())
		s.ok(s.rdb.HDel(s.ctx, s.key("jobs"), "j").Err())
		s.reclaim(s.epoch("n-9"), "n-1")
		if n := s.rdb.SCard(s.ctx, s.key("cancels")).Val(); n != 0 {
			t.Error("the mark is left, and would cancel the next job of this id")
		}
	})
}
