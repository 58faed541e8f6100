package lock

import (
	"strings"
	"testing"
	"time"
)

// C153: a key without expiry or left over. It is reported loudly within two
// TTLs, crashes nobody, and as soon as it is gone somebody holds the lock.
func TestC153ALeftOverKey(t *testing.T) {
	foreign := strings.Repeat("t", tokenLen) + "foreign"
	for name, tt := range map[string]struct {
		put  func(w *world)
		says string // part of the report, "" if there is none
	}{
		"a foreign value without expiry": {func(w *world) { _ = w.redis.Set(testKey, foreign) }, "no expiry"},
		"a foreign value for ten years": {func(w *world) {
			_ = w.redis.Set(testKey, foreign)
			w.redis.SetTTL(testKey, 10*365*24*time.Hour)
		}, "expires only in 87599h59m"},
		"a key of the wrong type":        {func(w *world) { w.redis.HSet(testKey, "f", "v") }, "holds a hash"},
		"a list":                         {func(w *world) { _, _ = w.redis.Push(testKey, "v") }, "holds a list"},
		"an empty value":                 {func(w *world) { _ = w.redis.Set(testKey, "") }, "no expiry"},
		"our own name without a token":   {func(w *world) { _ = w.redis.Set(testKey, "a") }, "no expiry"},
		"a value that is not text":       {func(w *world) { _ = w.redis.Set(testKey, "\x00\xff\n\"") }, "no expiry"},
		"a holder with a TTL of its own": {func(w *world) { _ = w.redis.Set(testKey, foreign); w.redis.SetTTL(testKey, 20*time.Second) }, ""},
	} {
		for hint, held := range map[string]bool{"with a hint": true, "without a hint": false} {
			t.Run(name+", "+hint, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					tt.put(w)
					p := w.peer("a", func(o *Options) { o.Held = func() bool { return held } }).run()
					w.pass(6 * time.Second)
					reported := p.log.count(`"level":"error"`, "redis-cli DEL '"+testKey+"'", tt.says) == 1
					if reported != (tt.says != "") || !strings.Contains(p.Stats().Blocked, tt.says) {
						t.Errorf("reported %v within two TTLs, %+v, log: %q", reported, p.Stats(), p.log.lines())
					}
					w.pass(10 * time.Second)
					if n := len(p.log.lines()); n > 3 || p.Stats().Obtained != 0 {
						t.Errorf("%+v, log: %q", p.Stats(), p.log.lines())
					}
					removed := w.now()
					w.redis.Del(testKey)
					if one := p.next(); one.began-removed > 6*time.Second {
						t.Errorf("obtained %v after the key was removed", one.began-removed)
					}
					if p.Stats().Blocked != "" {
						t.Errorf("still %+v", p.Stats())
					}
				})
			})
		}
	}
}

func TestALivingHolderIsNeverReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.peer("a").run().next()
		b := w.peer("b").run()
		w.pass(10 * time.Minute)
		if lines := b.log.lines(); lines[0] != "" {
			t.Errorf("log: %q", lines)
		}
	})
}

func TestAnUnexpectedReplyOfLookIsAnError(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string][]any{
		"nothing":        {},
		"another word":   {"WHAT"},
		"too short":      {"HELD", "string", int64(1)},
		"a TTL as text":  {"HELD", "string", "1", ""},
		"a type as code": {"HELD", int64(1), int64(1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if f, err := parseFound(reply); err == nil {
				t.Errorf("parseFound = %+v", f)
			}
		})
	}
}
