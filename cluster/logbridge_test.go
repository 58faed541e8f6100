package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func journalNone() zerolog.Logger { return zerolog.Nop() }

func TestLinesOfMemberlist(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"[DEBUG] memberlist: Stream connection":  "debug Stream connection",
		"[INFO] memberlist: Suspect n1":          "info Suspect n1",
		"[WARN] memberlist: Refuting":            "warn Refuting",
		"[ERR] memberlist: Failed to send\n":     "error Failed to send",
		"[ERROR] memberlist: Failed to compress": "error Failed to compress",
		"[ERR] Failed to shutdown transport":     "error Failed to shutdown transport",
		"Err: Could not set the deadline":        "error Err: Could not set the deadline",
		"no level at all":                        "info no level at all",
		"[UNKNOWN] memberlist: x":                "info [UNKNOWN] memberlist: x",
		"[":                                      "info [",
		"":                                       "info ",
		"[WARN] memberlist: " + strings.Repeat("é", 300): "warn " + strings.Repeat("é", 200) + "...",
	} {
		level, text := parseLine(in)
		if got := level.String() + " " + text; got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// bridge returns one with a clock that stands.
func bridge(j *journal) (b *logBridge, pass func(time.Duration)) {
	b = newLogBridge(j.logger().With().Str("component", "gossip").Logger())
	now := time.Now()
	b.now = func() time.Time { return now }
	return b, func(d time.Duration) { now = now.Add(d) }
}

func TestRepeatedLinesAreCounted(t *testing.T) {
	t.Parallel()
	var j journal
	b, pass := bridge(&j)
	for port := range 50 {
		b.logger().Printf("[ERR] memberlist: discarding stream from=10.0.0.1:%d", 40000+port)
	}
	b.logger().Printf("[ERR] memberlist: discarding stream from=10.0.0.2:1")
	if got := j.count("\n"); got != 2 {
		t.Fatalf("%d lines: %s", got, j.String())
	}
	pass(repeatAfter)
	b.logger().Printf("[ERR] memberlist: discarding stream from=10.0.0.1:1")
	if j.count(`"repeated":49`) != 1 || j.count(`"component":"gossip"`) != 3 || j.count(`"level":"error"`) != 3 {
		t.Errorf("got %s", j.String())
	}
}

func TestTheRateIsBounded(t *testing.T) {
	t.Parallel()
	var j journal
	b, pass := bridge(&j)
	for i := range 2000 {
		b.logger().Printf("[WARN] memberlist: node %d", i)
	}
	if got := j.count("\n"); got != lineLimit {
		t.Fatalf("%d lines", got)
	}
	pass(lineWindow)
	b.logger().Printf("[WARN] memberlist: later")
	if j.count(fmt.Sprintf(`"dropped":%d`, 2000-lineLimit)) != 1 {
		t.Errorf("the loss is not told")
	}
	for i := range 10 * maxLines {
		pass(time.Second)
		b.logger().Printf("[WARN] memberlist: other %d", i)
	}
	if len(b.seen) > maxLines {
		t.Errorf("%d lines remembered", len(b.seen))
	}
}

func TestDebugLinesDoNotCrowdOutErrors(t *testing.T) {
	t.Parallel()
	var j journal
	b := newLogBridge(j.logger().Level(zerolog.InfoLevel))
	for i := range 1000 {
		b.logger().Printf("[DEBUG] memberlist: node %d", i)
	}
	b.say("WARN", "this matters")
	if j.count("\n") != 1 || j.count("this matters") != 1 {
		t.Errorf("got %s", j.String())
	}
}

func TestErrorsAreQuietOnceTheStopHasBegun(t *testing.T) {
	t.Parallel()
	var j journal
	b, _ := bridge(&j)
	b.quiet()
	b.logger().Printf("[ERR] memberlist: Failed to send gossip")
	if j.count(`"level":"debug"`) != 1 || j.count(`"level":"error"`) != 0 {
		t.Errorf("got %s", j.String())
	}
}
