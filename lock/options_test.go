package lock

import (
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	good := Options{Key: "k", Session: "s"}
	for name, tt := range map[string]struct {
		change func(*Options)
		faults []string // parts of the error, all of them
	}{
		"the zero value of all but key and session fits together": {func(*Options) {}, nil},
		"a shorter TTL scales the rest":                           {func(o *Options) { o.TTL = 300 * time.Millisecond }, nil},
		"all faults are named at once": {
			func(o *Options) { o.Key, o.Session, o.TTL = "", "", time.Millisecond },
			[]string{`key ""`, `session ""`, "ttl 1ms: must be at least 50ms"},
		},
		"a TTL that Redis would cut is refused": {
			func(o *Options) { o.TTL = time.Second + time.Microsecond },
			[]string{"must be whole milliseconds"},
		},
		"a refresh and its attempt must end before the trust does": {
			func(o *Options) { o.Refresh, o.Attempt = 1500*time.Millisecond, 500*time.Millisecond },
			[]string{"refresh 1.5s and attempt 500ms: must together be below 2s, two thirds of the ttl 3s"},
		},
		"negative durations are refused": {
			func(o *Options) { o.Refresh, o.Attempt, o.Retry = -1, -1, -1 },
			[]string{"refresh -1ns: must be above 0", "attempt -1ns: must be above 0", "retry -1ns: must be above 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			tt.change(&o)
			_, err := New(nil, o)
			if (err != nil) != (tt.faults != nil) {
				t.Fatalf("New: %v, want faults %q", err, tt.faults)
			}
			for _, fault := range tt.faults {
				if !strings.Contains(err.Error(), fault) {
					t.Errorf("error %q does not name %q", err, fault)
				}
			}
		})
	}
}

func TestPauseAfter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bad, most int
		want      time.Duration
	}{
		"all is well":                {0, 4, time.Second},
		"the first bad one doubles":  {1, 4, 2 * time.Second},
		"the second doubles again":   {2, 4, 4 * time.Second},
		"it is capped":               {3, 4, 4 * time.Second},
		"a million overflow nothing": {1e6, 4, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pauseAfter(time.Second, tt.bad, tt.most); got != tt.want {
				t.Errorf("pauseAfter(1s, %d, %d) = %v, want %v", tt.bad, tt.most, got, tt.want)
			}
		})
	}
}

func TestJitterAddsUpToAQuarter(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if d := jitter(time.Second); d < time.Second || d > 1250*time.Millisecond {
			t.Fatalf("jitter(1s) = %v", d)
		}
	}
	if d := jitter(1); d != 1 {
		t.Errorf("jitter(1ns) = %v", d)
	}
}

func TestSessionOf(t *testing.T) {
	t.Parallel()
	token := strings.Repeat("x", tokenLen)
	for name, tt := range map[string]struct {
		value, want string
		ok          bool
	}{
		"what follows the token is the session": {token + "s1", "s1", true},
		"a token alone has no session":          {token, "", false},
		"an empty key has none":                 {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := SessionOf(tt.value); got != tt.want || ok != tt.ok {
				t.Errorf("SessionOf(%q) = %q, %v", tt.value, got, ok)
			}
		})
	}
}
