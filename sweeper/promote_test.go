package sweeper

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

func TestNextLook(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		p    queue.Promoted
		age  time.Duration
		want time.Duration
	}{
		"with nothing delayed the net serves":            {queue.Promoted{Next: -1}, time.Minute, lookEvery},
		"the next due time is met to the millisecond":    {queue.Promoted{Next: 1234 * ms}, time.Minute, 1234 * ms},
		"a due time far off is asked for again":          {queue.Promoted{Next: time.Hour}, time.Minute, lookEvery},
		"after a full batch there is no pause":           {queue.Promoted{Moved: 100, Next: 0}, time.Minute, 0},
		"a strange answer makes no busy loop":            {queue.Promoted{Moved: 0, Next: 0}, time.Minute, ms},
		"at the start of a term a poke may go astray":    {queue.Promoted{Next: time.Hour}, 100 * ms, settlingLook},
		"and a due time before that look is still exact": {queue.Promoted{Next: 7 * ms}, 100 * ms, 7 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nextLook(tt.p, tt.age); got != tt.want {
				t.Errorf("nextLook = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPromotionIsExactToTheMillisecond(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a").start()
		w.must(w.client.Register(w.ctx, "q"))
		w.pass(5*time.Second + 123456*time.Microsecond)
		var ids []string
		delays := []time.Duration{50 * ms, 51 * ms, 999 * ms, 2345 * ms, 9 * time.Second, 9*time.Second + ms, 34567 * ms}
		for _, d := range delays {
			ids = append(ids, w.enqueue("q", 1, queue.JobOptions{Delay: d})...)
		}
		began, before := time.Now(), n.line.calls("promote")
		for i, d := range delays {
			// Redis counts whole milliseconds of its clock
			due := began.Add(d).Truncate(ms)
			w.pass(time.Until(due) - time.Nanosecond)
			if got := w.state("q", ids[i]); got != queue.Delayed {
				t.Errorf("a nanosecond before its time job %d is %s", i, got)
			}
			w.pass(time.Nanosecond)
			// the sweeper's clock has no part in this: it waits out its own millisecond
			w.pass(ms)
			if got := w.state("q", ids[i]); got != queue.Waiting {
				t.Errorf("a millisecond after its time job %d is %s", i, got)
			}
		}
		if calls := n.line.calls("promote") - before; calls > 2*len(delays)+5 {
			t.Errorf("%d calls for %d due times: that is polling", calls, len(delays))
		}
	})
}

func TestAPokeEndsTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.node("n1-a").start()
		w.enqueue("q", 1, queue.JobOptions{Delay: time.Hour})
		w.pass(5 * time.Second)
		for range 3 {
			id := w.enqueue("q", 1, queue.JobOptions{Delay: 300 * ms})[0]
			w.pass(299 * ms)
			if got := w.state("q", id); got != queue.Delayed {
				t.Errorf("before its time it is %s", got)
			}
			w.pass(2 * ms)
			if got := w.state("q", id); got != queue.Waiting {
				t.Errorf("after its time it is %s", got)
			}
			w.pass(time.Second)
		}
	})
}

func TestANewQueueIsServedWithinASecond(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.node("n1-a").start()
		w.pass(5 * time.Second)
		id := w.enqueue("new", 1, queue.JobOptions{Delay: 2500 * ms})[0]
		w.pass(2501 * ms)
		if got := w.state("new", id); got != queue.Waiting {
			t.Errorf("it is %s", got)
		}
	})
}

// A lost poke costs no more than the next look at the queue.
func TestALostPokeCostsSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a")
		n.line.breakBy(func(command string) error {
			if command == "blpop" {
				return errors.New("i/o timeout")
			}
			return nil
		})
		n.start()
		w.must(w.client.Register(w.ctx, "q"))
		w.pass(5 * time.Second)
		id := w.enqueue("q", 1, queue.JobOptions{Delay: ms})[0]
		w.pass(lookEvery)
		if got := w.state("q", id); got != queue.Waiting {
			t.Errorf("it is %s", got)
		}
		if n.Stats().Failing == "" {
			t.Error("nobody is told that the wait fails")
		}
	})
}

// C050: promotion stops for ever after one error.
func TestC050PromotionGoesOnAfterAnyError(t *testing.T) {
	for name, text := range map[string]string{
		"a long script":           "BUSY Redis is busy running a script",
		"a script that is lost":   "NOSCRIPT No matching script",
		"a time-out":              "read tcp: i/o timeout",
		"a restart":               "LOADING Redis is loading the dataset in memory",
		"a full disk":             "MISCONF Redis is configured to save RDB snapshots",
		"something else there":    "WRONGTYPE Operation against a key holding the wrong kind of value",
		"a reply that is strange": "redis: can't parse reply",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				n := w.node("n1-a").start()
				w.must(w.client.Register(w.ctx, "q"))
				w.pass(5 * time.Second)
				n.line.breakBy(func(command string) error {
					if command == "promote" {
						return errors.New(text)
					}
					return nil
				})
				id := w.enqueue("q", 1, queue.JobOptions{Delay: 10 * ms})[0]
				w.pass(3 * time.Second)
				if got := w.state("q", id); got != queue.Delayed {
					t.Fatalf("during the fault it is %s", got)
				}
				s := n.Stats()
				if s.Failing == "" || s.Errors == 0 || !s.Sweeping || !n.Alive() {
					t.Errorf("during the fault: %+v, alive %v", s, n.Alive())
				}
				n.line.breakBy(nil)
				w.pass(time.Second)
				if got := w.state("q", id); got != queue.Waiting {
					t.Errorf("a second after the fault it is %s", got)
				}
				if s := n.Stats(); s.Failing != "" {
					t.Errorf("after the fault: still failing: %s", s.Failing)
				}
				if lines := n.log.count("going on"); lines < 1 || lines > 4 {
					t.Errorf("%d lines about 3 s of faults:\n%s", lines, n.log)
				}
			})
		})
	}
}

// A fault of all commands at once, for longer than the lock lasts, is survived too.
func TestAnOutageIsSurvived(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a").start()
		w.must(w.client.Register(w.ctx, "q"))
		w.pass(5 * time.Second)
		refused := func(string) error { return fmt.Errorf("dial tcp: connection refused") }
		n.line.breakBy(refused)
		n.heart.breakBy(refused)
		w.pass(time.Minute)
		id := w.enqueue("q", 1, queue.JobOptions{Delay: 10 * ms})[0]
		n.line.breakBy(nil)
		n.heart.breakBy(nil)
		w.pass(4 * time.Second)
		if got := w.state("q", id); got != queue.Waiting {
			t.Errorf("after the outage it is %s", got)
		}
		if s := n.Stats(); !s.Sweeping || s.Tenures != 2 || s.Condemned != 0 {
			t.Errorf("after the outage: %+v", s)
		}
	})
}

func TestTheIdleLoadIsSmall(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a").start()
		w.must(w.client.Register(w.ctx, "default"))
		w.pass(15 * time.Second)
		before := n.line.calls("")
		w.pass(time.Minute)
		perSecond := float64(n.line.calls("")-before) / 60
		t.Logf("%.1f calls a second", perSecond)
		if perSecond >= 5 {
			t.Errorf("%.1f calls a second, want fewer than 5: %v", perSecond, n.line.sent)
		}
	})
}

func TestRunIsForOneOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a").start()
		synctest.Wait()
		if err := n.Run(w.ctx); err == nil {
			t.Error("a second Run was allowed")
		}
	})
}

// Stopping releases the lock at once, so the other one sweeps without a wait.
func TestAStopHandsOverAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first := w.node("n1-a").start()
		w.pass(2 * time.Second)
		second := w.node("n2-b").start()
		w.pass(2 * time.Second)
		if first.Stats().Epoch == 0 || second.Stats().Sweeping {
			t.Fatal("the first one should sweep, alone")
		}
		epoch := first.Stats().Epoch
		first.cancel()
		w.pass(50 * ms)
		second.o.Lock.Nudge() // what the direct message of the one that stops does
		w.pass(50 * ms)
		if s := second.Stats(); !s.Sweeping || s.Epoch <= epoch {
			t.Errorf("0.1 s after the stop: %+v", s)
		}
	})
}
