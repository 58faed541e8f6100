package queue

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzBody(f *testing.F) {
	for _, s := range []string{"", "\n", "{", "1 k 3 5 1772366400000\npayload", "1 k 3 5 1 d2 c t90000 r1 be20,60000\n\x00\n\xff",
		"1 k 3 99 1\n", "1 k -1 5 1\n", "2 k 3 5 1\n", "1 k 3 5 1 b\n", "1 k 3 5 1 \n", "1 k 3 5 1 t-5\n", "1 k 3 5 1 xnew\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h, payload, err := parseBody(body)
		if err != nil {
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 600 {
				t.Errorf("the error is not fit to be shown: %q", err)
			}
			return
		}
		if !bytes.HasSuffix(body, payload) {
			t.Errorf("payload %q is not the end of the body", payload)
		}
		if h.priority < 0 || h.priority > 9 || h.maxAttempts < 1 || h.timeout < 0 || h.retention < 0 || h.enqueued < 0 || CheckName("kind", h.kind) != nil {
			t.Errorf("out of range: %+v", h)
		}
		if d := h.backoff.jittered(h.maxAttempts); d < 0 || d > maxBackoff {
			t.Errorf("backoff %+v waits %v", h.backoff, d)
		}
	})
}

func FuzzTries(f *testing.F) {
	for _, s := range []string{"", "1 0 0 1\n@ 1 n failed \"x\"", "-1 -2 -3 -4", "999999999999999999999 1", "1 1 1 1\n\n\n", "2 2 0 2\n1 1 n stalled \"a\"\n\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parsed := parseTries(s)
		for _, n := range []int{parsed.spent, parsed.stalls, parsed.unserved, parsed.count} {
			if n < 0 {
				t.Fatalf("negative: %+v", parsed)
			}
		}
		for _, one := range parsed.failures() {
			if !utf8.ValidString(one.Error) && len(one.Error) > 0 {
				t.Errorf("error %q", one.Error)
			}
		}
		again := parseTries(parsed.failed("n", ReasonFailed, s))
		if len(again.lines) > maxErrors || again.lines[0] == "" || again.count != parsed.count+1 {
			t.Errorf("one more: %+v", again)
		}
		if got := again.failures()[0].Error; got != clean(s) {
			t.Errorf("error %q came back as %q", clean(s), got)
		}
		c := newClaim(q, "n-1", "j", "1", []byte("1 k 3 5 1\n"), s)
		if d := c.Unserved().Delay; d < time.Second || d > time.Minute {
			t.Errorf("unserved for %v", d)
		}
	})
}

func FuzzLogEntry(f *testing.F) {
	for _, s := range []string{"", "exchange 1 n-1 1", "exchange 1 n-1 1\nsettle a dead 1 n-1 D 1 - - 5", "promote 1 - 5\npromote a 9\n\n",
		"trim 1 - 99999999999999999999", "x -1 - -1\nstore - - - -"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e, err := parseEntry(raw)
		if err != nil {
			if len(err.Error()) > 4000 {
				t.Errorf("the error has no bound: %d bytes", len(err.Error()))
			}
			return
		}
		if e.Raw != raw || len(e.Moves) != strings.Count(raw, "\n") || e.Turn != 0 && e.Epoch != 0 {
			t.Errorf("%q is read as %+v", raw, e)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("")
	f.Add(strings.Repeat("é", maxErrorText))
	f.Add(strings.Repeat("\xff", maxErrorText+1))
	f.Add("a" + strings.Repeat("\U0001F415", maxErrorText/4))
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if !utf8.ValidString(got) || len(got) > maxErrorText {
			t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
		}
		if utf8.ValidString(s) && len(s) <= maxErrorText && got != s {
			t.Errorf("changed %q to %q", s, got)
		}
		if clean(got) != got {
			t.Error("not stable")
		}
	})
}

func FuzzServer(f *testing.F) {
	for s := range serverSamples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, info string) {
		s := parseServer(info)
		_, _, _ = s.String(), s.Warnings(), s.TooOld()
		if s.Engine == "" || s.Embedded() != (s.Version == "") {
			t.Errorf("server %+v", s)
		}
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"", "redis://", "redis://:secret@h:1/2", "rediss://u:secret@[::1]:6379", "unix:///tmp/x.sock", "http://h", "redis://h:99999/x", "%zz", "redis://a b", "redis://:secret@%zz",
		"redis+sentinel://a:1,b:2/m/1?sentinel_password=x", "rediss+sentinel://u:p@[::1]:1,,/", "redis+sentinel://"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := CheckURL(s)
		if _, _, same := Endpoints(s); (same == nil) != (err == nil) {
			t.Errorf("CheckURL says %v, Endpoints %v", err, same)
		}
		if err != nil {
			if len(err.Error()) > 2*len(s)+400 {
				t.Errorf("the error has no bound: %v", err)
			}
			return
		}
		if isSentinel(s) {
			return
		}
		o, err := ParseURL(s)
		if err != nil || o.MaxRetries != -1 || !o.ContextTimeoutEnabled || o.PoolSize < 1 || o.Addr == "" {
			t.Errorf("options %+v", o)
		}
	})
}
