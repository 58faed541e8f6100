package watch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

// keepLogs switches the logs of queues on.
func keepLogs(t *testing.T, space *queue.Client, queues ...string) {
	t.Helper()
	for _, q := range queues {
		if err := space.KeepLog(t.Context(), q, true); err != nil {
			t.Fatal(err)
		}
	}
}

func enqueue(t *testing.T, space *queue.Client, q string, n int) (ids []string) {
	t.Helper()
	for range n {
		id, err := space.Enqueue(t.Context(), queue.Request{Kind: "k", Payload: []byte("x"), JobOptions: queue.JobOptions{Queue: q}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// claim lets a session take jobs of a queue.
func claim(t *testing.T, space *queue.Client, session, q string, n int) {
	t.Helper()
	s, err := space.Session(session)
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Exchange(t.Context(), q, queue.Exchange{Want: n})
	if err != nil || len(x.Claims) != n {
		t.Fatalf("claimed %d of %d: %v", len(x.Claims), n, err)
	}
}

func TestARunIsCollected(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	_, space := connect(t, redistest.Shared(t).URL(), prefix)
	keepLogs(t, space, Whole, "mail", "orders")
	c := collector(t, redistest.Shared(t).URL(), prefix, "mail", "orders")
	mail := enqueue(t, space, "mail", 3)
	enqueue(t, space, "orders", 2)
	claim(t, space, "n1-x", "mail", 2)
	c.await("a sample with all of it", func() bool {
		return slices.ContainsFunc(kept[history.Sample](t, c.dir, history.SamplesFile), func(s history.Sample) bool {
			return s.Jobs["waiting"] == 3 && s.Jobs["active"] == 2 && s.Totals["enqueued"] == 5 && s.Totals["claimed"] == 2 &&
				s.Active["n1-x"] == 2 && s.Memory > 0 && s.Error == ""
		})
	})
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	var stored, claimed []string
	for _, s := range c.steps() {
		for _, m := range s.Moves {
			switch {
			case s.Queue == "mail" && m.What == history.Store:
				stored = append(stored, m.ID)
			case s.Queue == "mail" && m.What == history.Claim:
				claimed = append(claimed, m.ID)
			}
		}
	}
	if !slices.Equal(stored, mail) || !slices.Equal(claimed, mail[:2]) {
		t.Errorf("stored %v, claimed %v of %v", stored, claimed, mail)
	}
	for _, tick := range kept[history.Tick](t, c.dir, history.ClockFile) {
		if tick.T > tick.After || time.Since(time.UnixMicro(tick.US)).Abs() > time.Minute {
			t.Errorf("tick %+v", tick)
		}
	}
}

func TestWhatHappensBeforeTheEndIsCollected(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	_, space := connect(t, redistest.Shared(t).URL(), prefix)
	keepLogs(t, space, "mail")
	c := collector(t, redistest.Shared(t).URL(), prefix, "mail")
	enqueue(t, space, "mail", 1)
	c.await("the first step", func() bool { return len(c.steps()) == 1 })
	enqueue(t, space, "mail", 700)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(c.steps()); n != 701 {
		t.Errorf("%d steps, want 701", n)
	}
}

func TestTheCollectorOutlivesAnOutageOfRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Dedicated(t, redistest.WithAOF("always"))
	_, space := connect(t, s.URL(), "kelpie")
	keepLogs(t, space, "mail")
	c := collector(t, s.URL(), "kelpie", "mail")
	enqueue(t, space, "mail", 3)
	c.await("three steps", func() bool { return len(c.steps()) == 3 })
	s.Kill()
	c.await("a sample that says so", func() bool {
		samples := kept[history.Sample](t, c.dir, history.SamplesFile)
		return len(samples) > 0 && samples[len(samples)-1].Error != ""
	})
	s.Restart()
	enqueue(t, space, "mail", 2)
	c.await("five steps", func() bool { return len(c.steps()) == 5 })
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if _, backs, err := told(c.steps()); backs != 0 || err != nil {
		t.Errorf("%d steps back, %v; nothing was lost", backs, err)
	}
}

func TestARedisThatLostAllIsNoticedAndLogsAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Dedicated(t)
	_, space := connect(t, s.URL(), "kelpie")
	keepLogs(t, space, "mail")
	c := collector(t, s.URL(), "kelpie", "mail")
	enqueue(t, space, "mail", 3)
	c.await("three steps", func() bool { return len(c.steps()) == 3 })
	s.Restart()
	c.await("the step back", func() bool {
		steps := c.steps()
		return len(steps) == 4 && steps[3].Back && steps[3].Index == 0
	})
	rdb := s.Client(t)
	c.await("the switch", func() bool { return rdb.HGet(t.Context(), space.Key("mail", "meta"), "log").Val() == "1" })
	enqueue(t, space, "mail", 2)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(c.steps()); n != 6 {
		t.Errorf("%d steps, want 6", n)
	}
}

func TestALogThatCannotBeReadToItsEndIsAnError(t *testing.T) {
	t.Parallel()
	s := redistest.Dedicated(t)
	c := collector(t, s.URL(), "kelpie", "mail")
	s.Kill()
	if err := c.stop(); !errors.Is(err, queue.ErrUnreachable) {
		t.Errorf("error %v", err)
	}
}

func TestLooksAreSoFarApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var starts []time.Duration
		lasts := []time.Duration{0, time.Second, 3 * time.Second, 0, 0}
		stop := errors.New("enough")
		err := each(t.Context(), 2*time.Second, func(_ context.Context, late time.Duration) error {
			if starts = append(starts, time.Since(began)); late != 0 {
				t.Errorf("look %d was %v late", len(starts), late)
			}
			if len(starts) == len(lasts) {
				return stop
			}
			time.Sleep(lasts[len(starts)-1]) // in the bubble's time
			return nil
		})
		want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 7 * time.Second, 9 * time.Second}
		if !slices.Equal(starts, want) || err != stop {
			t.Errorf("looks at %v, %v; want %v", starts, err, want)
		}
	})
}
