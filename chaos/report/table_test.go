package report

import (
	"errors"
	"strings"
	"testing"

	"github.com/kelpiehq/kelpie/chaos/check"
)

func table(t *testing.T, v *check.Verdict) string {
	t.Helper()
	var b strings.Builder
	if err := Table(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheTableShowsRulesCoverageAndFigures(t *testing.T) {
	t.Parallel()
	got := table(t, &check.Verdict{
		Verdict: check.Fail, Why: []string{"lost: 7 jobs are nowhere"},
		Invariants: []check.Invariant{
			{Name: check.Lost, Sentence: "no job is lost", Verdict: check.Fail, Checked: 20_000, Count: 7, Details: []string{"a", "b", "c", "d", "e", "f"}},
			{Name: check.Phantom, Sentence: "no job is new", Verdict: check.Pass, Checked: 12, Details: []string{"a detail of what holds"}},
		},
		Coverage: []check.Coverage{{Name: check.KillsMidJob, Have: 14, Need: 15}, {Name: check.Retries, Have: 3}, {Name: check.Rollbacks}},
		Measures: map[string]float64{check.RecoveryP95: 2345.6, check.MeasureLost: 7},
		Bars:     []check.Bar{{Measure: check.RecoveryP95, Most: 3000, Have: 2345.6, Verdict: check.Pass}, {Measure: check.LateMax, Most: 5, Verdict: check.Unknown}},
	})
	want := `verdict: FAIL
  lost: 7 jobs are nowhere

INVARIANT   VERDICT   CHECKED   VIOLATIONS
lost        FAIL       20,000            7
phantom     PASS           12            0

lost is broken. It must hold that no job is lost.
  a
  b
  c
  d
  e
  and 2 more

COVERAGE        HAPPENED   NEEDED
kills mid-job         14       15   too few
retries                3        -

FIGURE                           MEASURED   AT MOST
accepted jobs that are nowhere          7         -
recovery after a kill, p95         2.35 s       3 s   PASS
lateness of delayed jobs, max           -      5 ms   UNKNOWN
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheTableOfNothingIsTheVerdict(t *testing.T) {
	t.Parallel()
	if got := table(t, &check.Verdict{Verdict: check.Unknown}); got != "verdict: UNKNOWN\n" {
		t.Errorf("got %q", got)
	}
}

func TestNoNameMovesTheCursor(t *testing.T) {
	t.Parallel()
	bad := "a\x1b[2Jb\nc\u202ed" + strings.Repeat("x", 9000)
	got := table(t, &check.Verdict{
		Verdict: check.Fail, Why: []string{bad}, Invariants: []check.Invariant{{Name: bad, Verdict: check.Fail, Count: 1, Details: []string{bad}}},
		Coverage: []check.Coverage{{Name: bad, Have: 1}}, Measures: map[string]float64{bad: 1},
	})
	if strings.ContainsAny(got, "\x1b\u202e") || !strings.Contains(got, "a [2Jb c dxxx") {
		t.Errorf("control characters got through: %q", cut(got, 300))
	}
	if len(got) > 9000 {
		t.Errorf("long names make a table of %d bytes", len(got))
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestTheTableSaysThatItCouldNotBeWritten(t *testing.T) {
	t.Parallel()
	if err := Table(full{}, &check.Verdict{}); err == nil {
		t.Error("no error")
	}
}
