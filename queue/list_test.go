package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestJobsWalksEveryState has 350 jobs in each state, most of them with the same
// score, so that pages end in the middle of equals.
func TestJobsWalksEveryState(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		const count = 350
		n := s.session("n-1")
		fill := func(o JobOptions) {
			t.Helper()
			many := make([]Request, count)
			for i := range many {
				many[i] = Request{Kind: "k", Payload: []byte("1234567"), JobOptions: o}
				many[i].Queue = q
			}
			for _, r := range s.c.EnqueueMany(s.ctx, many) {
				s.ok(r.Err)
			}
		}
		settle := func(claims []*Claim, err error) {
			t.Helper()
			x := Exchange{}
			for _, c := range claims {
				x.Settle = append(x.Settle, c.Settle("n", err))
			}
			s.exchange(n, x)
		}
		fill(JobOptions{Retention: time.Hour})
		settle(s.claim(n, count), nil)
		fill(JobOptions{})
		settle(s.claim(n, count), Discard(errBroke))
		fill(JobOptions{Retention: time.Minute})
		marked := s.claim(n, count)
		for _, c := range marked {
			s.ok(s.rdb.SAdd(s.ctx, s.key("cancels"), c.ID).Err())
		}
		settle(marked, nil)
		fill(JobOptions{})
		s.claim(n, count)
		fill(JobOptions{Delay: time.Hour})
		fill(JobOptions{})
		for _, state := range States {
			seen := map[string]bool{}
			for r, err := range s.c.Jobs(s.ctx, q, state) {
				s.ok(err)
				if seen[r.ID] || r.State != state || r.Payload != nil || r.PayloadSize != 7 || r.Kind != "k" || !r.EnqueuedAt.Equal(noon) {
					t.Fatalf("%s: %+v (seen before: %v)", state, r, seen[r.ID])
				}
				if final := state == Completed || state == Dead || state == Cancelled; final != r.FinishedAt.Equal(noon) {
					t.Fatalf("%s ended %v", state, r.FinishedAt)
				}
				if (r.Holder == "n-1") != (state == Active) || (r.ErrorCount > 0) != (state == Dead) {
					t.Fatalf("%s: %+v", state, r)
				}
				seen[r.ID] = true
			}
			if len(seen) != count {
				t.Errorf("%s: walked %d jobs, want %d", state, len(seen), count)
			}
		}
		some := 0
		for range s.c.Jobs(s.ctx, q, Waiting) {
			if some++; some == 150 {
				break
			}
		}
		for _, err := range s.c.Jobs(s.ctx, "bad/name", Waiting) {
			if !errors.Is(err, ErrBadInput) {
				t.Errorf("a bad name: %v", err)
			}
		}
		i, err := s.c.Queue(s.ctx, q)
		s.ok(err)
		if i.Waiting != count || i.Delayed != count || i.Active != count || i.Dead != count || i.Completed != count || i.Cancelled != count {
			t.Errorf("counts %+v", i)
		}
		if got := s.conserved(); got != 6*count {
			t.Errorf("%d jobs", got)
		}
	})
}

func TestWaitingIsListedInTheOrderInWhichItRuns(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		for i := range 20 {
			s.add(JobOptions{ID: fmt.Sprintf("%d-%02d", 9-i%10, i), Priority: Priority(9 - i%10)})
		}
		var listed []string
		for r, err := range s.c.Jobs(s.ctx, q, Waiting) {
			s.ok(err)
			listed = append(listed, r.ID)
		}
		if got := ids(s.claim(s.session("n-1"), 20)); got != join2(listed) {
			t.Errorf("listed %v, claimed %s", listed, got)
		}
	})
}

func join2(list []string) (s string) {
	for i, l := range list {
		if i > 0 {
			s += " "
		}
		s += l
	}
	return s
}

func TestAStateThatIsNoneIsRefused(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		for _, state := range []State{"", "meta", "Waiting"} {
			n := 0
			for _, err := range s.c.Jobs(s.ctx, q, state) {
				if n++; !errors.Is(err, ErrBadInput) {
					t.Errorf("state %q: %v", state, err)
				}
			}
			if n != 1 {
				t.Errorf("state %q: %d entries, want one error", state, n)
			}
		}
	})
}

func TestFindLooksInEveryQueue(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		for i := range 5 {
			s.add(JobOptions{Queue: fmt.Sprint("q", i), ID: fmt.Sprint("j", i)})
		}
		if r, err := s.c.Find(s.ctx, "j3"); err != nil || r.Queue != "q3" || string(r.Payload) != "payload of j3" {
			t.Errorf("found %+v, %v", r, err)
		}
		if _, err := s.c.Find(s.ctx, "none"); !errors.Is(err, ErrNoJob) || errors.Is(err, ErrUnreachable) {
			t.Errorf("none: %v", err)
		}
		if _, err := s.c.Find(s.ctx, "a b"); !errors.Is(err, ErrBadInput) {
			t.Errorf("a bad id: %v", err)
		}
		if _, err := s.c.Job(s.ctx, "q1", "j3"); !errors.Is(err, ErrNoJob) {
			t.Errorf("in another queue: %v", err)
		}
		fresh, err := New(s.rdb, Options{Prefix: "t-nobody-was-here"})
		s.ok(err)
		if _, err := fresh.Find(s.ctx, "j3"); !errors.Is(err, ErrNoJob) {
			t.Errorf("in an empty space: %v", err)
		}
		if all, err := fresh.Queues(s.ctx); err != nil || all == nil || len(all) != 0 {
			t.Errorf("queues of an empty space: %v, %v", all, err)
		}
		if all, err := fresh.Nodes(s.ctx); err != nil || all == nil || len(all) != 0 {
			t.Errorf("nodes of an empty space: %v, %v", all, err)
		}
	})
}

func TestQueuesSayWhatWaitsAndSinceWhen(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.add(JobOptions{Queue: "b", ID: "old", Priority: Priority(0)})
		s.pass(time.Second)
		s.add(JobOptions{Queue: "b", Priority: Priority(9)})
		s.add(JobOptions{Queue: "a", Delay: 3 * time.Second})
		s.pass(2 * time.Second)
		s.ok(s.c.Register(s.ctx, "c"))
		s.ok(s.rdb.HSet(s.ctx, s.c.keys.of("c", "meta"), "paused", "1").Err())
		all, err := s.c.Queues(s.ctx)
		s.ok(err)
		if len(all) != 3 || all[0].Name != "a" || all[1].Name != "b" || all[2].Name != "c" {
			t.Fatalf("queues %+v", all)
		}
		if a := all[0]; a.Delayed != 1 || a.NextDue != time.Second || a.OldestWaiting != 0 {
			t.Errorf("a: %+v", a)
		}
		if b := all[1]; b.Waiting != 2 || b.OldestWaiting != 3*time.Second || b.Totals.Enqueued != 2 {
			t.Errorf("b: %+v", b)
		}
		if !all[2].Paused || all[0].Paused {
			t.Errorf("paused: %+v", all)
		}
		s.pass(5 * time.Second)
		if a, err := s.c.Queue(s.ctx, "a"); err != nil || a.NextDue != -4*time.Second {
			t.Errorf("overdue: %+v, %v", a, err)
		}
		if _, err := s.c.Queue(s.ctx, "never"); !errors.Is(err, ErrNoQueue) || errors.Is(err, ErrUnreachable) {
			t.Errorf("never used: %v", err)
		}
		if got, err := s.c.Backlogs(s.ctx, []string{"b", "never", "a"}); err != nil || fmt.Sprint(got) != "[2 0 0]" {
			t.Errorf("backlogs %v, %v", got, err)
		}
	})
}

func TestTheWholeJobSpaceHasOnlyKnownKeys(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch, lock, got := s.furnish()
		calls := s.calls(epoch, lock, got)
		for _, name := range callOrder {
			s.ok(calls[name]())
		}
		known := map[string]bool{s.tap.clock: true}
		for _, k := range queueKeys {
			known[s.key(k)] = true
		}
		for _, k := range clusterKeys {
			known[s.c.keys.whole(k)] = true
		}
		for it := s.rdb.Scan(s.ctx, 0, s.c.Prefix()+":*", 1000).Iterator(); it.Next(s.ctx); {
			if !known[it.Val()] {
				t.Errorf("key %s is none of the design", it.Val())
			}
		}
	})
}

func TestBacklogsOfOneBrokenQueueDoNotHideTheOthers(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("a", "b")
		s.ok(s.rdb.Set(s.ctx, s.c.keys.of("broken", "waiting"), "", 0).Err())
		got, err := s.c.Backlogs(s.ctx, []string{"broken", q, "nobody"})
		if err != nil || fmt.Sprint(got) != "[0 2 0]" {
			t.Errorf("Backlogs = %v, %v", got, err)
		}
		if got, err := s.c.Backlogs(s.ctx, []string{"broken"}); !errors.Is(err, ErrWrongType) {
			t.Errorf("Backlogs of nothing that can be read = %v, %v", got, err)
		}
	})
}
