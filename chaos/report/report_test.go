package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// keys returns the keys of a JSON object in the order of its text.
func keys(t *testing.T, text []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var found []string
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprint(key))
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// documented returns the keys of report.json that doc.go lists, in its order.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "# report.json")
	part, _, _ = strings.Cut(part, "# report.html")
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(\w+) `).FindAllStringSubmatch(part, -1) {
		found = append(found, m[1])
	}
	return found
}

func TestTheKeysOfTheJSONAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	h, v := aRun(30, 100)
	v.Why = []string{"something"}
	dir := t.TempDir()
	if err := Write(dir, h, v); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	got := keys(t, text)
	if !slices.Equal(got, documented(t)) {
		t.Errorf("report.json has %q, doc.go lists %q", got, documented(t))
	}
	if got[0] != "verdict" || !strings.HasPrefix(string(text), "{\n  \"verdict\": \"PASS\",\n") {
		t.Errorf("report.json begins with %q", text[:40])
	}
	var back Document
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	want := NewDocument(h, v)
	if !reflect.DeepEqual(back.Verdict, want.Verdict) || back.Machine != want.Machine || back.Run.Seed != 42 || len(back.Faults) != 6 {
		t.Errorf("read again it is another: %+v", back)
	}
}

func TestListsOfTheJSONAreNeverNull(t *testing.T) {
	t.Parallel()
	v := &check.Verdict{Verdict: check.Unknown, Duplicates: []check.Duplicate{{ID: "a"}}}
	text, err := json.Marshal(NewDocument(&history.History{}, v))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("null")) {
		t.Errorf("something is null: %s", text)
	}
	if v.Duplicates[0].Runs != nil {
		t.Error("the verdict of the caller was changed")
	}
}

func TestWriteReplacesOlderFilesAndLeavesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{JSONFile, HTMLFile} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("old "), 100_000), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, v := aRun(10, 10)
	before := fmt.Sprintf("%+v %+v", h.Run, v)
	if err := Write(dir, h, v); err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprintf("%+v %+v", h.Run, v); after != before {
		t.Error("Write changed what it was given")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || bytes.Contains(text, []byte("old old")) {
			t.Errorf("%s is not new: %v", e.Name(), err)
		}
	}
	if len(entries) != 2 {
		t.Errorf("%d files, want 2", len(entries))
	}
}

func TestWriteSaysWhichFileFailed(t *testing.T) {
	t.Parallel()
	h, v := aRun(10, 10)
	if err := Write(filepath.Join(t.TempDir(), "missing"), h, v); err == nil || !strings.Contains(err.Error(), JSONFile) || !strings.Contains(err.Error(), HTMLFile) {
		t.Errorf("a missing folder: %v", err)
	}
	dir := t.TempDir()
	v.Measures[check.MeasureLost] = math.NaN()
	if err := Write(dir, h, v); err == nil || !strings.Contains(err.Error(), JSONFile) {
		t.Errorf("a measure that is no number: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, HTMLFile)); err != nil {
		t.Errorf("the page is missing: %v", err)
	}
}

func TestFaultsAreJoinedFromTheirLines(t *testing.T) {
	t.Parallel()
	strike := func(n int, t int64, phase string) history.Strike {
		return history.Strike{N: n, T: 100 + t, Phase: phase, Kind: "kill", Aim: "all"}
	}
	hit := func(n int, t int64, target string, held ...string) history.Strike {
		s := strike(n, t, history.Hit)
		s.Target, s.Held, s.Sweeper = target, held, target == "n2"
		return s
	}
	sick := func(n int, t int64) history.Strike {
		s := strike(n, t, history.Health)
		s.Note = "n3 does not beat"
		return s
	}
	skip := strike(1, 9, history.Skip)
	skip.Note = "nobody held a job"
	base := Fault{N: 1, Kind: "kill", Aim: "all", Targets: []string{}}
	for name, tt := range map[string]struct {
		strikes []history.Strike
		want    func(f *Fault)
	}{
		"it lasts from begin to end": {
			[]history.Strike{strike(1, 5, history.Begin), strike(1, 50, history.Heal), strike(1, 60, history.End)},
			func(f *Fault) { f.Begin, f.End = 5, 60 }},
		"targets and what they held add up": {
			[]history.Strike{strike(1, 5, history.Begin), hit(1, 6, "n1", "q/1"), hit(1, 7, "n2", "q/2", "q/3"), hit(1, 8, "n1")},
			func(f *Fault) {
				f.Begin, f.End, f.Held, f.Targets, f.Sweeper = 5, 5, 3, []string{"n1", "n2"}, true
			}},
		"a skipped one says why": {
			[]history.Strike{strike(1, 5, history.Begin), skip},
			func(f *Fault) { f.Begin, f.End, f.Skipped, f.Note = 5, 5, true, "nobody held a job" }},
		"bad health before it": {
			[]history.Strike{sick(1, 1), strike(1, 5, history.Begin), strike(1, 60, history.End), sick(1, 70)},
			func(f *Fault) { f.Begin, f.End, f.Sick, f.Note = 5, 60, "before", "n3 does not beat" }},
		"bad health after it": {
			[]history.Strike{strike(1, 5, history.Begin), strike(1, 60, history.End), sick(1, 70)},
			func(f *Fault) { f.Begin, f.End, f.Sick, f.Note = 5, 60, "after", "n3 does not beat" }},
		"what came before the run began counts from its begin": {
			[]history.Strike{strike(1, -50, history.Begin), strike(1, 60, history.End)},
			func(f *Fault) { f.End = 60 }},
		"health outside of any fault is none": {
			[]history.Strike{sick(0, 1), strike(1, 5, history.Begin)},
			func(f *Fault) { f.Begin, f.End = 5, 5 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := base
			tt.want(&want)
			got := faults(tt.strikes, 100)
			if len(got) != 1 {
				t.Fatalf("%d faults, want one", len(got))
			}
			got[0].begun = false
			if !reflect.DeepEqual(got[0], want) {
				t.Errorf("got %+v\nwant %+v", got[0], want)
			}
		})
	}
	if got := faults([]history.Strike{strike(2, 9, history.Begin), strike(1, 12, history.Begin), strike(3, 3, history.Begin)}, 100); got[0].N != 3 || got[1].N != 2 || got[2].N != 1 {
		t.Errorf("not in the order of time: %+v", got)
	}
}
