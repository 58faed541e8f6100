package queue

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestC079 and its kin: what goes in comes out to the bit, wherever the job goes
// on its way.
func TestC079C082C083PayloadsComeBackBitForBit(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for name, payload := range map[string][]byte{
			"nothing":                    {},
			"a NUL":                      {0},
			"every byte":                 all,
			"a newline first":            []byte("\n\nx"),
			"what looks like a header":   []byte("1 k 3 5 1772366400000\n"),
			"64-bit integers":            []byte(`{"a":9007199254740993,"b":9223372036854775807,"c":-9223372036854775808,"d":18446744073709551615}`),
			"floats and an empty list":   []byte(`{"f":1e400,"g":0.1,"h":[],"i":{},"j":null,"k":1.0}`),
			"invalid UTF-8":              []byte("\xff\xfe\xc3\x28\xed\xa0\x80"),
			"emoji, RTL and BOM":         []byte("\ufeff🐕‍🦺 שלום \u202e\u2028"),
			"quotes and percent signs":   []byte(`%s %1 %% "'\\ ]] --[[`),
			"exactly the limit of bytes": bytes.Repeat([]byte("x"), DefaultMaxPayload),
		} {
			id, err := s.c.Enqueue(s.ctx, Request{Kind: "k", Payload: payload, JobOptions: JobOptions{Queue: q, Delay: time.Second}})
			s.ok(err)
			same := func(where string, got []byte) {
				t.Helper()
				if !bytes.Equal(got, payload) {
					t.Errorf("%s, %s: %.60q instead of %.60q", name, where, got, payload)
				}
			}
			same("delayed", s.record(id).Payload)
			_, err = s.c.Reschedule(s.ctx, q, id, 2*time.Second, time.Time{})
			s.ok(err)
			s.pass(2 * time.Second)
			s.promote(epoch)
			c := s.one(n)
			same("claimed", c.Payload)
			s.settle(n, c.Settle("n", Discard(errBroke)))
			s.ok(s.c.Revive(s.ctx, q, []string{id})[0].Err)
			c = s.one(n)
			same("revived", c.Payload)
			if r := s.record(id); r.PayloadSize != len(payload) {
				t.Errorf("%s: size %d, want %d", name, r.PayloadSize, len(payload))
			}
			s.settle(n, c.Settle("n", nil))
		}
	})
}

func TestAPayloadOverTheLimitIsRefused(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		c, err := New(s.rdb, Options{Prefix: s.c.Prefix(), MaxPayload: 10})
		s.ok(err)
		if _, err := c.Enqueue(s.ctx, Request{Kind: "k", Payload: make([]byte, 10), JobOptions: JobOptions{Queue: q}}); err != nil {
			t.Error(err)
		}
		_, err = c.Enqueue(s.ctx, Request{Kind: "k", Payload: make([]byte, 11), JobOptions: JobOptions{Queue: q}})
		if !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrBadInput) || err.Error() != "payload of 11 bytes: payload is over the limit of 10 bytes" {
			t.Errorf("11 bytes: %v", err)
		}
	})
}

func TestTypedKinds(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		type mail struct {
			To string
			N  int64
		}
		k := Define[mail]("mail.send", JobOptions{Queue: q, MaxAttempts: 9, Delay: time.Hour})
		in := mail{"é@x", math.MaxInt64}
		id, err := k.Enqueue(s.ctx, s.c, in, JobOptions{At: noon.Add(-time.Second), Priority: Priority(0)})
		s.ok(err)
		c := s.one(s.session("n-1"))
		if c.ID != id || c.Kind != k.Name() || c.MaxAttempts != 9 || c.Priority != 0 {
			t.Errorf("claimed %+v", c.Info)
		}
		if out, err := k.Decode(c.Payload); out != in || err != nil {
			t.Errorf("decoded %+v, %v", out, err)
		}
		raw := Define[[]byte]("raw")
		if r, err := raw.Request([]byte("\xff\x00")); string(r.Payload) != "\xff\x00" || err != nil {
			t.Errorf("raw bytes became %q, %v", r.Payload, err)
		}
		if _, err := Define[chan int]("bad").Enqueue(s.ctx, s.c, nil); !errors.Is(err, ErrBadInput) {
			t.Errorf("a channel: %v", err)
		}
		if _, err := Define[int]("bad kind").Enqueue(s.ctx, s.c, 1); !errors.Is(err, ErrBadInput) {
			t.Errorf("a bad name: %v", err)
		}
	})
}

func TestC084C085C087NamesAndIDs(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"a": true, "Mail.send-v2_x": true, "0": true, "-": true, "...": true, strings.Repeat("x", 100): true,
		"": false, ".": false, "..": false, "cluster": false, strings.Repeat("x", 101): false, "a b": false, "a:b": false, "{a}": false,
		"é": false, "a\n": false, "a\x00": false, "a/b": false, "*": false, "a*": false, "[a]": false, " a": false, "\xff": false, "А": false,
	} {
		if err := CheckName("queue", name); (err == nil) != good || err != nil && (!errors.Is(err, ErrBadInput) || !strings.Contains(err.Error(), "queue")) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for id, good := range map[string]bool{
		"a": true, "order:42/refund?x={y}*": true, "%s": true, strings.Repeat("~", 100): true,
		"": false, "a b": false, "a\n": false, "a\t": false, "\x7f": false, "é": false, strings.Repeat("x", 101): false,
	} {
		if err := CheckID(id); (err == nil) != good || err != nil && !errors.Is(err, ErrBadInput) {
			t.Errorf("id %q: %v", id, err)
		}
	}
}

func TestC087OddIDsLiveAsAnyOther(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		odd := []string{"*", "[a-z]", "{x}", "a:b", "%d", "0", "-1", "nil", "'", `"`, `\`, "]]", strings.Repeat("~", 100)}
		s.adds(odd...)
		s.wantWaiting(strings.Join(odd, " "))
		got := s.claim(n, len(odd))
		s.reclaim(epoch, "n-1")
		for _, id := range odd {
			if r, err := s.c.Find(s.ctx, id); err != nil || r.ID != id || r.Stalls != 1 {
				t.Errorf("%q: %+v, %v", id, r, err)
			}
		}
		if len(got) != len(odd) || s.conserved() != len(odd) {
			t.Error("some are lost")
		}
	})
}

func TestC043C044C046DelaysAndDueTimes(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		day := 24 * time.Hour
		for _, d := range []time.Duration{-1, -time.Millisecond, -time.Duration(noon.UnixNano()), math.MinInt64, maxWait + 1, math.MaxInt64} {
			_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, Delay: d}})
			if !errors.Is(err, ErrBadInput) || !strings.Contains(err.Error(), "delay") {
				t.Errorf("delay %v: %v", d, err)
			}
		}
		for _, at := range []time.Time{time.Unix(-1, 0), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), MaxDue.Add(1), time.Date(292277026596, 1, 1, 0, 0, 0, 0, time.UTC)} {
			_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, At: at}})
			if !errors.Is(err, ErrBadInput) || !strings.Contains(err.Error(), "at ") {
				t.Errorf("at %v: %v", at, err)
			}
		}
		if _, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, At: noon, Delay: 1}}); !errors.Is(err, ErrBadInput) {
			t.Errorf("both: %v", err)
		}
		if s.conserved() != 0 {
			t.Error("something was stored")
		}
		epoch := s.epoch("n-9")
		for _, d := range []time.Duration{time.Nanosecond, 24 * day, 25 * day, 30 * day, 50 * day, 1<<31*time.Millisecond + 1, maxWait} {
			id := s.add(JobOptions{Delay: d})
			want := noon.Add((d + time.Millisecond - 1).Truncate(time.Millisecond))
			if r := s.record(id); !r.DueAt.Equal(want) || r.State != Delayed {
				t.Errorf("delay %v: %s, due %v, want %v", d, r.State, r.DueAt, want)
			}
		}
		for _, at := range []time.Time{MaxDue, noon.Add(time.Millisecond), noon.In(time.FixedZone("x", 5*3600)).Add(time.Hour)} {
			if r := s.record(s.add(JobOptions{At: at})); !r.DueAt.Equal(at) {
				t.Errorf("at %v: due %v", at, r.DueAt)
			}
		}
		if p := s.promote(epoch); p.Moved != 0 || s.waiting() != "" {
			t.Errorf("promoted %+v", p)
		}
	})
}

func TestC039C040Backoff(t *testing.T) {
	t.Parallel()
	spent := []int{-1, 0, 1, 2, 3, 35, 37, 40, 62, 63, 64, 65, 100, 1000, 1 << 31, math.MaxInt}
	for _, b := range []Backoff{{}, {Quadratic, time.Millisecond, time.Hour}, {Exponential, time.Second, time.Hour}, {Exponential, 24 * time.Hour, 0}, {Constant, 3 * time.Second, 0}} {
		last := time.Duration(0)
		for _, n := range spent {
			d, f := b.Delay(n), b.filled()
			if d < f.Base || d > f.Max || d < last {
				t.Errorf("%+v after %d attempts: %v after %v", b, n, d, last)
			}
			for range 20 {
				if j := b.jittered(n); j < d || j > d+d/10 && j > f.Max || j > f.Max {
					t.Errorf("%+v after %d attempts: %v with jitter, want %v to +10 %%", b, n, j, d)
				}
			}
			last = d
		}
		if got, err := parseBackoff(b.String()); err != nil || got.filled() != b.filled() {
			t.Errorf("%+v came back as %+v, %v", b, got, err)
		}
	}
	for i, want := range []time.Duration{1, 4, 9, 16, 25} {
		if got := (Backoff{}).Delay(i + 1); got != want*time.Second {
			t.Errorf("default after %d attempts: %v", i+1, got)
		}
	}
	for _, b := range []Backoff{{Base: time.Microsecond}, {Base: 25 * time.Hour}, {Max: time.Millisecond}, {Growth: "x"}, {Base: -1}} {
		if err := b.check(); !errors.Is(err, ErrBadInput) {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

func TestC039MaxAttemptsIsTheNumberOfRuns(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-9")
		for _, bad := range []int{-1, math.MinInt, MaxMaxAttempts + 1, math.MaxInt} {
			if _, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, MaxAttempts: bad}}); !errors.Is(err, ErrBadInput) {
				t.Errorf("max attempts %d: %v", bad, err)
			}
		}
		for max, want := range map[int]int{0: DefaultMaxAttempts, 1: 1, 2: 2, 3: 3, 7: 7} {
			id := s.add(JobOptions{MaxAttempts: max})
			runs := 0
			for ; s.state(id) != Dead; runs++ {
				s.settle(n, s.one(n).Settle("n", RetryIn(0, errBroke)))
				s.promote(epoch)
			}
			if r := s.record(id); runs != want || r.Attempts != want || r.MaxAttempts != want {
				t.Errorf("max %d: %d runs, %+v", max, runs, r)
			}
		}
		if _, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, Priority: Priority(10)}}); fmt.Sprint(err) != "priority 10: must be 0 to 9" {
			t.Error(err)
		}
	})
}
