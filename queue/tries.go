package queue

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A tries value is one line of counts and then the last errors, newest first;
// lua/reclaim.lua writes the same form:
//
//	<attempts spent> <stalls> <unserved> <errors in all>
//	<ms> <attempt> <node> <reason> <JSON string>

const (
	maxErrors    = 10
	maxErrorText = 4 << 10 // bytes, before encoding
)

// Failure is one failed attempt.
type Failure struct {
	Attempt int
	At      time.Time
	Node    string
	Reason  string // failed, timeout, panic, refused, undecodable or stalled
	Error   string
}

// Reasons of a Failure.
const (
	ReasonFailed      = "failed"
	ReasonTimeout     = "timeout"
	ReasonPanic       = "panic"
	ReasonRefused     = "refused" // by the handler, for good
	ReasonUndecodable = "undecodable"
	ReasonStalled     = "stalled"
)

// tries is what a job has behind it.
type tries struct {
	spent, stalls, unserved, count int
	lines                          []string
}

// parseTries never fails: what cannot be read counts as nothing, since the body
// is what must not be lost.
func parseTries(s string) (t tries) {
	first, rest, _ := strings.Cut(s, "\n")
	fmt.Sscanf(first, "%d %d %d %d", &t.spent, &t.stalls, &t.unserved, &t.count)
	t.spent, t.stalls, t.unserved, t.count = max(t.spent, 0), max(t.stalls, 0), max(t.unserved, 0), max(t.count, 0)
	if rest != "" {
		t.lines = strings.Split(rest, "\n")
	}
	return t
}

// failed returns the value after one more failure; "@" stands for the time.
func (t tries) failed(node, reason, text string) string {
	quoted, _ := json.Marshal(clean(text)) // a string always can be
	attempt := t.spent + 1
	line := fmt.Sprintf("@ %d %s %s %s", attempt, node, reason, quoted)
	t.lines = append([]string{line}, t.lines[:min(len(t.lines), maxErrors-1)]...)
	t.spent, t.count, t.unserved = attempt, t.count+1, 0
	return t.String()
}

// unservedOnce returns the value after a node without a handler had the job.
func (t tries) unservedOnce() string { t.unserved++; return t.String() }

func (t tries) String() string {
	s := strings.Join([]string{strconv.Itoa(t.spent), strconv.Itoa(t.stalls), strconv.Itoa(t.unserved), strconv.Itoa(t.count)}, " ")
	if len(t.lines) > 0 {
		s += "\n" + strings.Join(t.lines, "\n")
	}
	return s
}

// failures reads the lines; one that cannot be read is shown as it is.
func (t tries) failures() []Failure {
	out := make([]Failure, 0, len(t.lines))
	for _, line := range t.lines {
		out = append(out, parseFailure(line))
	}
	return out
}

func parseFailure(line string) Failure {
	f := strings.SplitN(line, " ", 5)
	if len(f) < 5 {
		return Failure{Reason: ReasonUndecodable, Error: clean(line)}
	}
	ms, _ := strconv.ParseInt(f[0], 10, 64)
	attempt, _ := strconv.Atoi(f[1])
	var text string
	if json.Unmarshal([]byte(f[4]), &text) != nil {
		text = clean(f[4])
	}
	return Failure{Attempt: attempt, At: time.UnixMilli(ms).UTC(), Node: f[2], Reason: f[3], Error: text}
}

// clean makes a text valid UTF-8 of at most maxErrorText bytes and says what it
// cut.
func clean(s string) string {
	const mark = " [cut]"
	if len(s) > maxErrorText {
		s = s[:maxErrorText] + mark // a bound on the work below
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxErrorText {
		return s
	}
	end := maxErrorText - len(mark)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
