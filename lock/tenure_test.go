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

func TestATenureHoldsTheKeyWithItsWholeValue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.peer("session-1").run()
		one := p.next()
		if one.began != 0 {
			t.Errorf("the first candidate waited %v for a free lock", one.began)
		}
		if v := one.Value(); v != w.value() {
			t.Errorf("Value() = %q, in Redis stands %q", v, w.value())
		}
		if s, ok := SessionOf(one.Value()); s != "session-1" || !ok {
			t.Errorf("SessionOf(%q) = %q, %v", one.Value(), s, ok)
		}
		one.SetEpoch(7)
		if s := p.Stats(); !s.Holding || s.Epoch != 7 || s.Obtained != 1 {
			t.Errorf("Stats() = %+v", s)
		}
		w.pass(10 * time.Minute)
		if !one.Valid() || one.ctx.Err() != nil {
			t.Error("the tenure did not last while all was well")
		}
		if len(p.log.lines()) != 1 {
			t.Errorf("ten quiet minutes were logged: %q", p.log.lines())
		}
	})
}

func TestItRefreshesOnceASecond(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.peer("a").run()
		p.next()
		before := p.line.calls.Load()
		w.pass(100 * time.Second)
		if n := p.line.calls.Load() - before; n < 99 || n > 101 {
			t.Errorf("%d refreshes in 100 s", n)
		}
	})
}

func TestTheEndOfATenure(t *testing.T) {
	errFenced := errors.New("fenced")
	for name, tt := range map[string]struct {
		act    func(w *world, p *peer, one *tenure) // at 0.5 s
		end    [2]time.Duration                     // when the context ends, from and to
		reason Reason
		cause  error
		free   bool // the key is free right after
	}{
		"another value in the key ends it with the next refresh": {
			func(w *world, _ *peer, _ *tenure) { _ = w.redis.Set(testKey, "somebody else") },
			[2]time.Duration{time.Second, time.Second}, Lost, ErrLost, false,
		},
		"a key that is gone ends it with the next refresh": {
			func(w *world, _ *peer, _ *tenure) { w.redis.Del(testKey) },
			[2]time.Duration{time.Second, time.Second}, Lost, ErrLost, true,
		},
		"a key of another type ends it with the next refresh": {
			func(w *world, _ *peer, _ *tenure) { w.redis.Del(testKey); w.redis.HSet(testKey, "f", "v") },
			[2]time.Duration{time.Second, time.Second}, Lost, ErrLost, false,
		},
		"refused connections end it two thirds of the TTL after the last refresh": {
			func(_ *world, p *peer, _ *tenure) { p.line.state.Store(lineRefused) },
			[2]time.Duration{2 * time.Second, 2 * time.Second}, Expired, ErrLost, false,
		},
		"a silent network does the same": {
			func(_ *world, p *peer, _ *tenure) { p.line.state.Store(lineSilent) },
			[2]time.Duration{2 * time.Second, 2 * time.Second}, Expired, ErrLost, false,
		},
		"a refresh whose answer is lost extends nothing": {
			func(_ *world, p *peer, _ *tenure) { p.line.state.Store(lineDeaf) },
			[2]time.Duration{2 * time.Second, 2 * time.Second}, Expired, ErrLost, false,
		},
		"a resignation ends it at once with its own cause": {
			func(_ *world, _ *peer, one *tenure) { one.Resign(errFenced) },
			[2]time.Duration{500 * time.Millisecond, 500 * time.Millisecond}, Resigned, errFenced, true,
		},
		"a resignation without a cause has one": {
			func(_ *world, _ *peer, one *tenure) { one.Resign(nil) },
			[2]time.Duration{500 * time.Millisecond, 500 * time.Millisecond}, Resigned, ErrResigned, true,
		},
		"the end of Run's context ends it at once": {
			func(_ *world, p *peer, _ *tenure) { p.cancel() },
			[2]time.Duration{500 * time.Millisecond, 500 * time.Millisecond}, Stopped, context.Canceled, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.peer("a").run()
				one := p.next()
				w.pass(500 * time.Millisecond)
				tt.act(w, p, one)
				at, cause := one.over(t)
				synctest.Wait()
				if at < tt.end[0] || at > tt.end[1] {
					t.Errorf("ended at %v, want %v", at, tt.end)
				}
				if !errors.Is(cause, tt.cause) {
					t.Errorf("cause %v, want %v", cause, tt.cause)
				}
				if reason, _ := one.Ended(); reason != tt.reason || one.Valid() {
					t.Errorf("reason %q, valid %v; want %q, false", reason, one.Valid(), tt.reason)
				}
				if n := p.Stats().Ended[tt.reason]; n != 1 {
					t.Errorf("Ended = %v", p.Stats().Ended)
				}
				if free := !w.redis.Exists(testKey); free != tt.free {
					t.Errorf("free = %v at %v", free, w.now())
				}
				if p.log.count("lock given up", string(tt.reason)) != 1 {
					t.Errorf("log: %q", p.log.lines())
				}
			})
		})
	}
}

func TestTheTrustRunsFromTheStartOfARefreshNotFromItsAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.peer("a").run()
		one := p.next()
		w.pass(1500 * time.Millisecond)
		p.line.lag.Store(int64(400 * time.Millisecond)) // of the 500 ms that an attempt may take
		w.pass(8950 * time.Millisecond)                 // answered at 10.4 s, sent at 10 s
		p.line.state.Store(lineRefused)
		if at, _ := one.over(t); at != 12*time.Second {
			t.Errorf("ended at %v, want 2 s after the refresh that was sent at 10 s", at)
		}
	})
}

func TestNoRefreshWhileTheWorkHangs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var hangs atomic.Bool
		a := w.peer("a", func(o *Options) { o.Alive = func() bool { return !hangs.Load() } })
		let := make(chan struct{})
		began := make(chan context.Context, 1)
		a.runDuty(func(ctx context.Context, _ *Tenure) error { // ignores its context
			began <- ctx
			<-let
			return nil
		})
		ctx := <-began
		w.pass(10*time.Second + time.Millisecond) // the last refresh was 1 ms ago
		hangs.Store(true)
		b := w.peer("b").run()
		w.pass(2*time.Second - time.Millisecond)
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), ErrLost) {
			t.Errorf("2 s after the last refresh: cause %v", context.Cause(ctx))
		}
		if n := a.Stats().Ended[Hung]; n != 1 {
			t.Errorf("Ended = %v", a.Stats().Ended)
		}
		two := b.next()
		if took := two.began - 10*time.Second; took > 4250*time.Millisecond {
			t.Errorf("taken over %v after the last refresh", took)
		}
		w.pass(time.Minute)
		if n := a.Stats().Obtained; n != 1 {
			t.Errorf("it began %d tenures while its first work had not returned", n)
		}
		close(let)
		b.stop()
		w.pass(2 * time.Second)
		if n := a.Stats().Obtained; n != 2 {
			t.Errorf("it did not compete again after its work had returned: %d tenures", n)
		}
		if a.log.count("the work outlived its lock") != 1 {
			t.Errorf("log: %q", a.log.lines())
		}
	})
}

func TestWorkThatComesRoundInTimeKeepsTheLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var hangs atomic.Bool
		p := w.peer("a", func(o *Options) { o.Alive = func() bool { return !hangs.Load() } }).run()
		one := p.next()
		for range 10 {
			w.pass(700 * time.Millisecond)
			hangs.Store(true)
			w.pass(700 * time.Millisecond)
			hangs.Store(false)
		}
		if !one.Valid() {
			t.Errorf("log: %q", p.log.lines())
		}
	})
}

func TestTheKeyIsReleasedOnlyAfterTheWorkHasReturned(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.peer("a")
		let, began := make(chan struct{}), make(chan struct{})
		p.runDuty(func(context.Context, *Tenure) error {
			close(began)
			<-let
			return nil
		})
		<-began
		p.cancel()
		w.pass(10 * time.Second) // refreshed all the while: nobody else shall begin
		if w.value() == "" {
			t.Error("released, or expired, while the work was running")
		}
		close(let)
		<-p.done
		if w.value() != "" {
			t.Error("not released when Run returned")
		}
	})
}

func TestADutyThatReturnsByItself(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error
		reason Reason
	}{
		"with an error it is a fault":         {errors.New("boom"), Fault},
		"without one it is a resignation":     {nil, Resigned},
		"a wrapped context error is no state": {fmt.Errorf("x: %w", context.Canceled), Fault},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.peer("a")
				p.runDuty(func(context.Context, *Tenure) error { return tt.err })
				nag := time.NewTicker(100 * time.Millisecond)
				defer nag.Stop()
				for w.now() < time.Minute { // nudges do not make it spin
					<-nag.C
					p.Nudge()
				}
				synctest.Wait()
				n := p.Stats().Ended[tt.reason]
				if n < 10 || n > 20 {
					t.Errorf("%d tenures in a minute, want one each 4-5 s", n)
				}
			})
		})
	}
}

func TestAPanicReleasesTheKeyAndPasses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.peer("a")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = p.Run(context.Background(), func(context.Context, *Tenure) error { panic("boom") })
		}()
		if w.value() != "" {
			t.Error("the key was left behind")
		}
		if n := p.Stats().Ended[Fault]; n != 1 {
			t.Errorf("Ended = %v", p.Stats().Ended)
		}
	})
}

func TestRunRunsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.peer("a").run()
		p.next()
		if err := p.Run(context.Background(), p.hold); err == nil {
			t.Error("a second Run began")
		}
	})
}
