package lock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// C154: take-over time after a crash. The last refresh of the dead holder may
// be as young as the crash, so the key lives a whole TTL on.
func TestC154TakeOverAfterACrash(t *testing.T) {
	for round := range 30 {
		inWorld(t, func(t *testing.T, w *world) {
			crash := 10*time.Second + time.Duration(round)*37*time.Millisecond
			a := w.peer("a").run()
			a.next()
			b, c := w.peer("b").run(), w.peer("c").run()
			w.pass(crash)
			a.line.state.Store(lineSilent) // power off: nothing leaves it any more
			var two *tenure
			select {
			case two = <-b.tenures:
			case two = <-c.tenures:
			}
			if took := two.began - crash; took > 5*time.Second || took < 2*time.Second {
				t.Errorf("crash at %v, taken over after %v", crash, took)
			}
		})
	}
}

func TestAReleaseAndANudgeHandOverAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.peer("a").run()
		a.next()
		b := w.peer("b", func(o *Options) { o.Held = func() bool { return true } }).run()
		for _, p := range []struct{ from, to *peer }{{a, b}} {
			w.pass(12 * time.Second) // it makes sure by itself before, and not for a while
			at := w.now()
			p.from.stop()
			p.to.Nudge() // although its hint still says held
			if two := p.to.next(); two.began-at > 50*time.Millisecond {
				t.Errorf("handed over after %v", two.began-at)
			}
		}
	})
}

func TestANudgeRightAfterAnAttemptIsNotLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.peer("a").run()
		a.next()
		b := w.peer("b").run() // has tried this very moment
		a.stop()
		b.Nudge()
		if two := b.next(); two.began > 50*time.Millisecond {
			t.Errorf("handed over after %v", two.began)
		}
	})
}

func TestTheCallsOfAFollower(t *testing.T) {
	for name, tt := range map[string]struct {
		hint  bool
		nudge time.Duration
		most  int64 // in 100 s
		least int64
	}{
		"without a hint it tries about once a second":         {false, 0, 130, 80},
		"with a hint it only makes sure within two TTLs":      {true, 0, 44, 32},
		"a storm of nudges is bounded":                        {true, 7 * time.Millisecond, 2050, 100},
		"a nudge each beat costs one call each":               {true, 500 * time.Millisecond, 240, 190},
		"a nudge in a state without a hint adds no other one": {false, 500 * time.Millisecond, 240, 190},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.peer("a").run().next()
				b := w.peer("b", func(o *Options) { o.Held = func() bool { return tt.hint } }).run()
				end := time.After(100 * time.Second)
				var nudges <-chan time.Time
				if tt.nudge > 0 {
					tick := time.NewTicker(tt.nudge)
					defer tick.Stop()
					nudges = tick.C
				}
				for done := false; !done; {
					select {
					case <-nudges:
						b.Nudge()
					case <-end:
						done = true
					}
				}
				synctest.Wait()
				if n := b.line.calls.Load(); n > tt.most || n < tt.least {
					t.Errorf("%d calls in 100 s, want %d to %d", n, tt.least, tt.most)
				}
			})
		})
	}
}

func TestAWrongHintCostsTwoTTLsAtMost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.peer("b", func(o *Options) { o.Held = func() bool { return true } }).run()
		if one := b.next(); one.began > 6*time.Second {
			t.Errorf("obtained after %v", one.began)
		}
	})
}

func TestAHintThatTurnsIsFollowedWithinARetry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var held atomic.Bool
		held.Store(true)
		a := w.peer("a").run()
		a.next()
		b := w.peer("b", func(o *Options) { o.Held = held.Load }).run()
		w.pass(time.Minute)
		a.stop()
		held.Store(false)
		if two := b.next(); two.began > time.Minute+1250*time.Millisecond {
			t.Errorf("obtained after %v", two.began-time.Minute)
		}
	})
}

// C148: a holder is paused longer than the lock lasts and goes on. Another one
// works by then; the old one knows at its first look at the clock.
func TestC148APausedHolderKnowsWhenItWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A pause stops the timers of a process too: this tenure has none yet.
		one := newTenure(nil, time.Now(), 2*time.Second)
		<-time.After(2*time.Second - 1)
		if !one.Valid() {
			t.Error("not valid within its trust")
		}
		<-time.After(1)
		if one.Valid() {
			t.Error("valid after its trust")
		}
		one.timer = time.AfterFunc(time.Hour, func() {})
		one.extend(time.Now())
		one.timer.Stop()
		if one.Valid() {
			t.Error("a refresh after the wake-up revived it")
		}
	})
	inWorld(t, func(t *testing.T, w *world) {
		a := w.peer("a").run()
		one := a.next()
		b := w.peer("b").run()
		w.pass(10 * time.Second)
		a.line.state.Store(lineSilent)
		two := b.next()
		if at, cause := one.over(t); at >= two.began || !errors.Is(cause, ErrLost) {
			t.Errorf("the old tenure ended at %v (%v), the new one began at %v", at, cause, two.began)
		}
		a.line.state.Store(lineUp)
		w.pass(time.Minute)
		if !two.Valid() || a.Stats().Obtained != 1 {
			t.Errorf("the woken one did not stay a candidate: %+v", a.Stats())
		}
	})
}

// C149: after an outage, however long, a candidate is a candidate again.
func TestC149AnOutage(t *testing.T) {
	const ttl = 3 * time.Second
	for name, outage := range map[string]time.Duration{
		"of half a TTL":    ttl / 2,
		"of a TTL and 1 s": ttl + time.Second,
		"of ten TTLs":      10 * ttl,
	} {
		for _, nodes := range []int{1, 3} {
			for kind, state := range map[string]int32{"refused": lineRefused, "silent": lineSilent, "deaf": lineDeaf} {
				t.Run(fmt.Sprintf("%s, %s, with %d nodes", name, kind, nodes), func(t *testing.T) {
					for round := range 5 {
						inWorld(t, func(t *testing.T, w *world) {
							outageOf(t, w, outage, nodes, state, time.Duration(round)*211*time.Millisecond)
						})
					}
				})
			}
		}
	}
}

func outageOf(t *testing.T, w *world, outage time.Duration, nodes int, state int32, shift time.Duration) {
	var peers []*peer
	for i := range nodes {
		peers = append(peers, w.peer(fmt.Sprint("node-", i)).run())
	}
	first := peers[0].next()
	w.pass(10*time.Second + shift)
	lines := 0
	for _, p := range peers {
		p.line.state.Store(state)
	}
	w.pass(outage)
	for _, p := range peers {
		p.line.state.Store(lineUp)
	}
	back := w.now()
	w.pass(5 * time.Second) // TTL + 2 s
	var holding int
	for _, p := range peers {
		if p.Stats().Holding {
			holding++
		}
		lines += len(p.log.lines())
	}
	if holding != 1 {
		t.Errorf("%d holders %v after Redis was back", holding, w.now()-back)
	}
	if limit := 12 * nodes; lines > limit {
		t.Errorf("%d log lines, want at most %d", lines, limit)
	}
	if outage >= 3*time.Second && first.Valid() {
		t.Error("the tenure outlived its TTL without an answer")
	}
}

func TestAShortOutageBetweenTwoRefreshesIsNotNoticed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.peer("a").run()
		one := p.next()
		w.pass(10*time.Second + 10*time.Millisecond)
		p.line.state.Store(lineRefused)
		w.pass(1500 * time.Millisecond)
		p.line.state.Store(lineUp)
		w.pass(time.Minute)
		if !one.Valid() {
			t.Errorf("log: %q", p.log.lines())
		}
		if p.Stats().RefreshFailed == 0 || p.log.count("refreshed again") != 1 {
			t.Errorf("%+v, log: %q", p.Stats(), p.log.lines())
		}
	})
}

// C151: a restarted process finds its own name in the lock.
func TestC151ARestartedNodeFindsItsOwnNameInTheLock(t *testing.T) {
	for round := range 20 {
		inWorld(t, func(t *testing.T, w *world) {
			killed := 10*time.Second + time.Duration(round)*53*time.Millisecond
			old := w.peer("same-name").run()
			one := old.next()
			w.pass(killed)
			old.line.state.Store(lineSilent)                      // kill -9
			again := w.peer("same-name").run()                    // even with the old session id
			if before := w.value(); again.Stats().Obtained != 0 { // not taken for its own
				t.Fatalf("it took %q for its own", before)
			}
			two := again.next()
			if took := two.began - killed; took > 5*time.Second {
				t.Errorf("its duties ran after %v", took)
			}
			if one.Value() == two.Value() {
				t.Error("two tenures share a value")
			}
		})
	}
}

func TestTheContextEndsWhileTheKeyIsBeingObtained(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.peer("first").run()
		first.next()
		first.stop() // Redis knows the scripts from here on
		p := w.peer("a")
		p.line.lag.Store(int64(200 * time.Millisecond))
		p.runDuty(func(context.Context, *Tenure) error {
			t.Error("a duty began after the end")
			return nil
		})
		w.pass(100 * time.Millisecond)
		p.stop()
		if w.redis.Exists(testKey) {
			t.Error("the key was left behind")
		}
	})
}
