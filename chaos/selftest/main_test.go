package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kelpiehq/kelpie/chaos/plant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a kelpie that says what is wanted, whatever it is asked.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kelpie")
	write := exec.Command("/bin/sh", "-c", `cat > "$1" && chmod 755 "$1"`, "sh", path) // a process forked while this one writes it would keep it busy
	write.Stdin = strings.NewReader("#!/bin/sh\n" + body + "\n")
	if err := write.Run(); err != nil {
		t.Fatal(err)
	}
	return path
}

func report(verdict string, violated ...string) string {
	var all []string
	for _, name := range violated {
		all = append(all, fmt.Sprintf(`{"name":%q,"verdict":"FAIL"}`, name))
	}
	all = append(all, `{"name":"slots","verdict":"PASS"}`)
	return fmt.Sprintf(`{"verdict":%q,"why":["a reason"],"invariants":[%s]}`, verdict, strings.Join(all, ","))
}

var bug = plant.Bug{Name: "bug", Says: "something is missing", Scenario: "zombies", Invariants: []string{"settlement"}}

func TestEveryBugIsDrawnOverTheDays(t *testing.T) {
	t.Parallel()
	for _, some := range []int{1, 4, 6, 7, 17} {
		seen := map[string]bool{}
		all := len(plant.Bugs())
		for day := range uint64((all + some - 1) / some) {
			for _, b := range draw(options{some: some, seed: 20_000 + day}) {
				seen[b.Name] = true
			}
		}
		if len(seen) != all {
			t.Errorf("%d a day: %d of %d bugs were drawn in as many days as it must take", some, len(seen), all)
		}
	}
}

func TestTheSameSeedDrawsTheSameBugs(t *testing.T) {
	t.Parallel()
	names := func(seed uint64) (names []string) {
		for _, b := range draw(options{some: 6, seed: seed}) {
			names = append(names, b.Name)
		}
		return names
	}
	if a, b := names(7), names(7); !slices.Equal(a, b) || len(a) != 6 {
		t.Errorf("seed 7 draws %v and %v", a, b)
	}
	if a, b := names(7), names(8); slices.ContainsFunc(a, func(n string) bool { return slices.Contains(b, n) }) {
		t.Errorf("seeds 7 and 8 draw %v and %v, which share some", a, b)
	}
}

func TestOnlyTakesNamesWithAText(t *testing.T) {
	t.Parallel()
	if bugs := draw(options{only: "settle-by"}); len(bugs) != 2 {
		t.Errorf("settle-by draws %v", bugs)
	}
	if bugs := draw(options{only: "no such bug"}); len(bugs) != 0 {
		t.Errorf("draws %v", bugs)
	}
	if len(draw(options{})) != len(plant.Bugs()) {
		t.Error("without a number not all are drawn")
	}
}

func TestEachScenarioHasOneSoundTrialBeforeItsBugs(t *testing.T) {
	t.Parallel()
	sound, bugs := map[string]bool{}, 0
	for _, x := range plan(plant.Bugs(), 5) {
		switch {
		case x.seed != 5:
			t.Errorf("%s has seed %d", x.name(), x.seed)
		case x.sound() && sound[x.scenario]:
			t.Errorf("%s is tried twice", x.name())
		case x.sound():
			sound[x.scenario] = true
		case !sound[x.scenario] || x.scenario != x.bug.Scenario:
			t.Errorf("%s is tried before a sound build, or in another scenario", x.name())
		default:
			bugs++
		}
	}
	if bugs != len(plant.Bugs()) {
		t.Errorf("%d of %d bugs are tried", bugs, len(plant.Bugs()))
	}
}

func TestWhatAnOutcomeMustBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trial trial
		want  string // in what is wrong; "": nothing is
	}{
		"a bug that is found":                {trial{bug: bug, verdict: "FAIL", by: []string{"place", "settlement"}}, ""},
		"a bug that is missed":               {trial{bug: bug, verdict: "PASS"}, "missed"},
		"a bug that left it open":            {trial{bug: bug, verdict: "UNKNOWN", why: "too few kills"}, "missed: too few kills"},
		"a bug found by another rule":        {trial{bug: bug, verdict: "FAIL", by: []string{"place"}}, "not by settlement"},
		"a bug found too late":               {trial{bug: bug, verdict: "FAIL", by: []string{"settlement"}, took: 61 * time.Second}, "too late"},
		"a bug whose run went wrong":         {trial{bug: bug, verdict: "FAIL", by: []string{"settlement"}, err: errors.New("no Redis")}, "no Redis"},
		"a sound build that passes":          {trial{verdict: "PASS", took: 2 * time.Minute}, ""},
		"a sound build that fails":           {trial{verdict: "FAIL", by: []string{"settlement"}, why: "an alarm"}, "must PASS: an alarm"},
		"a sound build that left it open":    {trial{verdict: "UNKNOWN"}, "must PASS"},
		"a sound build whose run went wrong": {trial{err: errors.New("no Redis")}, "no Redis"},
	} {
		if got := c.trial.fault(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q is wrong, want %q", name, got, c.want)
		}
	}
}

func TestAReportIsRead(t *testing.T) {
	t.Parallel()
	var x trial
	if err := x.read([]byte(report("FAIL", "place", "lost"))); err != nil {
		t.Fatal(err)
	}
	if x.verdict != "FAIL" || !slices.Equal(x.by, []string{"place", "lost"}) || x.why != "a reason" {
		t.Errorf("read %+v", x)
	}
	for _, bad := range []string{"", "no JSON", "{}", `{"verdict":""}`} {
		if new(trial).read([]byte(bad)) == nil {
			t.Errorf("%q is taken for a report", bad)
		}
	}
}

func TestARunIsAskedForWithItsPlan(t *testing.T) {
	t.Parallel()
	x := &trial{bug: bug, scenario: "zombies", seed: 9, skew: true}
	asked := filepath.Join(t.TempDir(), "asked")
	x.run(t.Context(), script(t, `echo "$@" > `+asked+"\necho '"+report("FAIL", "settlement")+"'\nexit 1"), "/bin/planted", "/some/dir")
	if fault := x.fault(); fault != "" {
		t.Error(fault)
	}
	args, err := os.ReadFile(asked)
	want := "chaos run --scenario zombies --kelpie /bin/planted --seed 9 --report /some/dir/report-bug --json --skewed /bin/planted\n"
	if err != nil || string(args) != want {
		t.Errorf("asked for %q (%v), want %q", args, err, want)
	}
}

func TestARunWithoutAVerdictSaysWhy(t *testing.T) {
	t.Parallel()
	x := &trial{scenario: "zombies"}
	x.run(t.Context(), script(t, "echo there is no redis-server >&2; exit 1"), "", t.TempDir())
	if fault := x.fault(); !strings.Contains(fault, "no verdict") || !strings.Contains(fault, "there is no redis-server") {
		t.Errorf("wrong is %q", fault)
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	begun := filepath.Join(t.TempDir(), "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	path := script(t, "trap 'exit 1' INT\necho > "+begun+"\nwhile :; do sleep 0.05; done")
	x := &trial{scenario: "zombies"}
	done := make(chan struct{})
	go func() { defer close(done); x.run(ctx, path, "", t.TempDir()) }()
	if _, err := os.ReadFile(begun); err != nil { // it waits for the script, and the script for it
		t.Fatal(err)
	}
	cancel()
	<-done
	if fault := x.fault(); !strings.Contains(fault, "did not end") {
		t.Errorf("wrong is %q", fault)
	}
}

// builds hands out scripts instead of builds.
func builds(t *testing.T, kelpie string, fails string) builder {
	return func(_ context.Context, b plant.Bug, _ bool) (string, error) {
		if b.Name == fails && fails != "" {
			return "", errors.New("it does not compile")
		}
		return kelpie, nil
	}
}

func TestAllTrialsAreToldAndStandInTheTable(t *testing.T) {
	t.Parallel()
	kelpie := script(t, `case "$*" in *report-sound*) echo '`+report("PASS")+`' ;; *) echo '`+report("FAIL", "settlement")+`' ;; esac`)
	var out bytes.Buffer
	good, err := hold(t.Context(), plan([]plant.Bug{bug}, 1), 2, builds(t, kelpie, ""), t.TempDir(), &out)
	if !good || err != nil {
		t.Errorf("good %v, %v:\n%s", good, err, out.String())
	}
	for _, want := range []string{
		`(?m)^ +1/2 .*: (PASS|FAIL by settlement) after \d+ s$`, `(?m)^ +2/2 `,
		`(?m)^ok +\(none\) +zombies +PASS +- +\d+ s$`, `(?m)^ok +bug +zombies +FAIL +settlement +\d+ s$`, `All 2 runs came out`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
}

func TestWhatIsWrongIsSaidAtTheEnd(t *testing.T) {
	t.Parallel()
	other := plant.Bug{Name: "other", Scenario: "zombies", Invariants: []string{"place"}}
	kelpie := script(t, "echo '"+report("PASS")+"'")
	var out bytes.Buffer
	good, err := hold(t.Context(), plan([]plant.Bug{bug, other}, 1), 1, builds(t, kelpie, "other"), t.TempDir(), &out)
	if good || err != nil {
		t.Errorf("good %v, %v", good, err)
	}
	for _, want := range []string{"WRONG  bug: the bug was missed", "WRONG  other: it does not compile", "2 of 3 runs did not"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestWithoutASoundBuildNothingIsTried(t *testing.T) {
	t.Parallel()
	_, err := hold(t.Context(), plan([]plant.Bug{bug}, 1), 1, func(context.Context, plant.Bug, bool) (string, error) {
		return "", errors.New("no Go tool")
	}, t.TempDir(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "no Go tool") {
		t.Error(err)
	}
}

func TestOnlyReportsThatAreWrongAreKept(t *testing.T) {
	t.Parallel()
	good, bad := &trial{scenario: "zombies", verdict: "PASS"}, &trial{bug: bug, verdict: "PASS"}
	kept := func(all bool, trials ...*trial) (left []string) {
		dir := t.TempDir()
		for _, x := range trials {
			if err := os.MkdirAll(filepath.Join(dir, "report-"+x.name()), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := tidy(trials, dir, all); err != nil {
			t.Fatal(err)
		}
		entries, _ := os.ReadDir(dir) // gone: nothing is left
		for _, e := range entries {
			left = append(left, e.Name())
		}
		return left
	}
	if left := kept(false, good); len(left) != 0 {
		t.Errorf("left after a good one: %v", left)
	}
	if left := kept(false, good, bad); !slices.Equal(left, []string{"report-bug"}) {
		t.Errorf("left after a good and a bad one: %v", left)
	}
	if left := kept(true, good, bad); len(left) != 2 {
		t.Errorf("left when all is to be kept: %v", left)
	}
}

func TestBadArgumentsAreUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-together", "0"}, {"-some", "-1"}, {"a-name"}, {"-nosuch"}, {"-only", "no such bug"}} {
		var out, errOut bytes.Buffer
		if code := run(args, &out, &errOut); code != 2 || errOut.Len() == 0 {
			t.Errorf("%v: code %d, %q", args, code, errOut.String())
		}
	}
}
