package queue

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// silentTB lets a check fail without failing the test.
type silentTB struct {
	rapid.TB
	failed bool
	text   strings.Builder
}

func (f *silentTB) Errorf(format string, args ...any) {
	f.failed = true
	fmt.Fprintf(&f.text, format+"\n", args...)
}
func (f *silentTB) Fatalf(format string, args ...any) { f.Errorf(format, args...); f.FailNow() }
func (f *silentTB) Logf(format string, args ...any)   { fmt.Fprintf(&f.text, format+"\n", args...) }
func (f *silentTB) Fail()                             { f.failed = true }
func (f *silentTB) FailNow()                          { f.failed = true; panic(f) }
func (f *silentTB) Failed() bool                      { return f.failed }

// TestAMissingProtectionIsFound cuts one protection out of exchange.lua at a time
// and shows that the state machine then fails.
func TestAMissingProtectionIsFound(t *testing.T) {
	t.Parallel()
	cut := func(from, to string) func(string) string {
		return func(text string) string { return strings.Replace(text, from, to, 1) }
	}
	for name, f := range map[string]func(string) string{
		"the fence check":             cut("if held[j] ~= ARGV[i + 1] or seen[id] then", "if not held[j] or seen[id] then"),
		"the holder check, gone":      cut("string.sub(holder, 1, 4) == 'gone'", "false"),
		"the holder check, its turns": cut("turn <= tonumber(holder)", "false"),
		"the seen table":              cut("or seen[id] then", "then"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasSuffix(name, "gone") {
				f = func(text string) string {
					text = cut("string.sub(holder, 1, 4) == 'gone'", "false")(text)
					return cut("tonumber(holder)", "(tonumber(holder) or 0)")(text)
				}
			}
			checkFails(t, map[string]func(string) string{"exchange": f})
		})
	}
}

// TestAMissingLineOfTheLogIsFound cuts one kind of move out of the log at a time
// and shows that the replay then fails.
func TestAMissingLineOfTheLogIsFound(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"enqueue store", "exchange promote", "exchange claim", "exchange bye", "reclaim gone", "trim forget",
		"reschedule reschedule", "condemn condemn"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			script, move, _ := strings.Cut(line, " ")
			noted := regexp.MustCompile(`if entry (.*\s*)note\(entry, '` + move + `'`)
			checkFails(t, map[string]func(string) string{script: func(text string) string {
				return noted.ReplaceAllString(text, "if false and entry ${1}note(entry, '"+move+"'")
			}})
		})
	}
}

// checkFails runs the state machine with changed scripts, which must fail.
func checkFails(t *testing.T, edit map[string]func(string) string) {
	t.Helper()
	s := newSpace(t, redistest.Client(t), "redis-server", edit)
	f := &silentTB{TB: t}
	for range 5 { // one is enough most of the time
		if !f.failed {
			check(f, func(rt *rapid.T) { newMachine(s).run(rt) })
		}
	}
	if !f.failed {
		t.Errorf("the state machine finds nothing wrong:\n%s", f.text.String())
	}
}

// check is rapid.Check for a test that must not end with it.
func check(f *silentTB, property func(*rapid.T)) {
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
	}()
	rapid.Check(f, property)
}
