package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// The tests of this file run in real time, on a real Redis and on miniredis:
// what redislock and look.lua do to the key is the same on both.

// onBoth gives f a key of its own on each store.
func onBoth(t *testing.T, f func(t *testing.T, rdb *redis.Client, key string)) {
	t.Parallel()
	redistest.Both(t, func(t *testing.T, rdb *redis.Client, _ string) {
		t.Parallel()
		f(t, rdb, redistest.Prefix(t)+":{cluster}:sweeper")
	})
}

// live runs a Lock whose duties arrive in the channel and hold on until their
// context ends. stop ends it and waits.
func live(t *testing.T, rdb *redis.Client, o Options) (l *Lock, tenures <-chan *Tenure, stop func()) {
	t.Helper()
	l, err := New(rdb, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	began, done := make(chan *Tenure, 100), make(chan struct{})
	go func() {
		defer close(done)
		err := l.Run(ctx, func(ctx context.Context, t *Tenure) error {
			began <- t
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return l, began, stop
}

func await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: not within 20 s", what)
		panic("unreachable")
	}
}

func TestTheLifeOfALock(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client, key string) {
		a, began, stop := live(t, rdb, Options{Key: key, Session: "a"})
		one := await(t, began, "the first tenure")
		stored, err := rdb.Get(t.Context(), key).Result()
		if err != nil || stored != one.Value() {
			t.Fatalf("GET = %q, %v; Value() = %q", stored, err, one.Value())
		}
		if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 3*time.Second {
			t.Errorf("PTTL = %v", ttl)
		}
		if s, _ := SessionOf(stored); s != "a" {
			t.Errorf("SessionOf(%q) = %q", stored, s)
		}

		b, next, _ := live(t, rdb, Options{Key: key, Session: "b", Held: func() bool { return true }})
		stop()
		b.Nudge()
		if two := await(t, next, "the second tenure"); two.Value() == one.Value() || !two.Valid() || one.Valid() {
			t.Errorf("one %q %v, two %q %v", one.Value(), one.Valid(), two.Value(), two.Valid())
		}
		if n := a.Stats().Ended[Stopped]; n != 1 {
			t.Errorf("Ended = %v", a.Stats().Ended)
		}
	})
}

func TestALockTakenAwayEndsTheTenureAndIsCampaignedForAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client, key string) {
		l, began, _ := live(t, rdb, Options{Key: key, Session: "a"})
		one := await(t, began, "the first tenure")
		if err := rdb.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		two := await(t, began, "the second tenure")
		reason, cause := one.Ended()
		if reason != Lost || !errors.Is(cause, ErrLost) {
			t.Errorf("Ended() = %q, %v", reason, cause)
		}
		if one.Value() == two.Value() || l.Stats().Obtained != 2 {
			t.Errorf("%q, %q, %+v", one.Value(), two.Value(), l.Stats())
		}
	})
}

func TestWhatLookFinds(t *testing.T) {
	for name, tt := range map[string]struct {
		put  func(ctx context.Context, rdb *redis.Client, key string) error
		want found
	}{
		"nothing": {
			func(context.Context, *redis.Client, string) error { return nil }, found{},
		},
		"a string without expiry, cut to 100 bytes": {
			func(ctx context.Context, rdb *redis.Client, key string) error {
				return rdb.Set(ctx, key, make([]byte, 200), 0).Err()
			}, found{kind: "string", ttl: -time.Millisecond, value: string(make([]byte, 100))},
		},
		"an empty string": {
			func(ctx context.Context, rdb *redis.Client, key string) error { return rdb.Set(ctx, key, "", 0).Err() },
			found{kind: "string", ttl: -time.Millisecond},
		},
		"a hash": {
			func(ctx context.Context, rdb *redis.Client, key string) error {
				return rdb.HSet(ctx, key, "f", "v").Err()
			}, found{kind: "hash", ttl: -time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, rdb *redis.Client, key string) {
				l, err := New(rdb, Options{Key: key, Session: "a"})
				if err != nil {
					t.Fatal(err)
				}
				if err := tt.put(t.Context(), rdb, key); err != nil {
					t.Fatal(err)
				}
				if got, err := l.ask(t.Context()); err != nil || got != tt.want {
					t.Errorf("ask = %+v, %v; want %+v", got, err, tt.want)
				}
				if got, err := l.obtain(t.Context()); (err == nil) != (tt.want.kind == "") {
					t.Errorf("obtain = %v, %v", got, err)
				}
			})
		})
	}
}

func TestAKilledRedisEndsTheTenureAndTheNextOneFollowsItsReturn(t *testing.T) {
	t.Parallel()
	server := redistest.Dedicated(t)
	rdb := server.Client(t)
	l, began, _ := live(t, rdb, Options{Key: "k", Session: "a", TTL: 1500 * time.Millisecond})
	one := await(t, began, "the first tenure")
	server.Kill()
	await(t, one.over, "the end of the first tenure")
	if reason, cause := one.Ended(); reason != Expired || !errors.Is(cause, ErrLost) {
		t.Errorf("Ended() = %q, %v", reason, cause)
	}
	server.Restart()
	if two := await(t, began, "the second tenure"); !two.Valid() || l.Stats().RefreshFailed == 0 {
		t.Errorf("%+v", l.Stats())
	}
}

func TestAPausedRedisDoesNotHoldUpTheStepDown(t *testing.T) {
	t.Parallel()
	server := redistest.Dedicated(t)
	_, began, _ := live(t, server.Client(t), Options{Key: "k", Session: "a", TTL: 1500 * time.Millisecond})
	one := await(t, began, "the first tenure")
	server.Pause()
	defer server.Resume()
	paused := time.Now()
	await(t, one.over, "the end of the tenure")
	if took := time.Since(paused); took > 3*time.Second {
		t.Errorf("stepped down after %v", took)
	}
	server.Resume()
	await(t, began, "the second tenure")
}
