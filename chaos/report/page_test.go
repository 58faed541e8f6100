package report

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// written writes the report of h and v and returns the parsed page and its text.
func written(t *testing.T, h *history.History, v *check.Verdict) (*html.Node, string) {
	t.Helper()
	dir := t.TempDir()
	if err := Write(dir, h, v); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, HTMLFile))
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return root, string(text)
}

// all returns the elements of one name below n, in the order of the page.
func all(n *html.Node, name string) []*html.Node {
	var found []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			found = append(found, d)
		}
	}
	return found
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// byID returns the element with an id.
func byID(t *testing.T, root *html.Node, id string) *html.Node {
	t.Helper()
	for d := range root.Descendants() {
		if d.Type == html.ElementNode && attr(d, "id") == id {
			return d
		}
	}
	t.Fatalf("the page has no %q", id)
	return nil
}

// words returns the text of n with single spaces.
func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// row returns the cells of the first row of a section's tables that begins so.
func row(t *testing.T, section *html.Node, first string) []string {
	t.Helper()
	for _, tr := range all(section, "tr") {
		var cells []string
		for cell := range tr.ChildNodes() {
			if cell.Type == html.ElementNode {
				cells = append(cells, words(cell))
			}
		}
		if len(cells) > 0 && cells[0] == first {
			return cells
		}
	}
	t.Fatalf("no table of section %q has a row %q", attr(section, "id"), first)
	return nil
}

func TestThePageHasItsSectionsInOrder(t *testing.T) {
	t.Parallel()
	h, v := aRun(75, 500)
	root, _ := written(t, h, v)
	var got []string
	for _, s := range all(root, "section") {
		got = append(got, attr(s, "id"))
		if words(byID(t, root, attr(s, "aria-labelledby"))) == "" {
			t.Errorf("section %q has no heading", attr(s, "id"))
		}
	}
	want := []string{"run", "verdict", "coverage", "time", "recoveries", "late", "duplicates", "faults", "machine", "repeat"}
	if !slices.Equal(got, want) {
		t.Errorf("sections are %q, want %q", got, want)
	}
	for i, a := range all(all(root, "nav")[0], "a") {
		if i >= len(want) || attr(a, "href") != "#"+want[i] {
			t.Errorf("link %d of the page leads to %q", i, attr(a, "href"))
		}
	}
	if got := words(all(root, "title")[0]); got != "PASS: Chaos run kills, seed 42" {
		t.Errorf("the title is %q", got)
	}
}

func TestThePageShowsTheNumbersOfTheVerdict(t *testing.T) {
	t.Parallel()
	h, v := aRun(60, 1234)
	v.Verdict, v.Why = check.Fail, []string{"settlement: 3 violations"}
	v.Invariants[3] = check.Invariant{Name: check.Settlement, Sentence: "one settles", Verdict: check.Fail, Checked: 56789, Count: 3, Details: []string{"mail/7 was settled twice"}}
	v.Coverage = []check.Coverage{{Name: check.KillsMidJob, Have: 12, Need: 15}, {Name: check.Retries, Have: 1500}}
	v.Bars = []check.Bar{{Measure: check.RecoveryP95, Most: 3000, Have: 3456.7, Verdict: check.Fail}, {Measure: check.SettleTime, Most: 20_000, Verdict: check.Unknown}}
	v.Kills = []check.Recovery{{N: 4, Kind: "kill", Node: "n7", T: h.Run.Begin + 12*second, Noticed: 1 * second, Condemned: 2 * second, Running: 2500 * 1000, Jobs: 9, RedisUp: true, Free: true}}
	v.Duplicates = []check.Duplicate{{ID: "j", Queue: "mail", Cause: "n7 was killed", Fault: 4, Overlap: true, Runs: []check.Span{{Node: "n7", Attempt: 2, Fence: 99, From: h.Run.Begin + second, To: h.Run.Begin + 2*second, Outcome: "ok"}, {Node: "n8"}}}}
	for i := range h.Samples {
		h.Samples[i].Timer, h.Samples[i].Memory = int64(i), 5632<<10
	}
	h.Samples[7].Error = "timeout"
	root, _ := written(t, h, v)
	for _, tt := range []struct {
		section, row string
		want         []string
	}{
		{"verdict", "settlement", []string{"FAIL", "56,789", "3", "one settles the first 1 of 3 mail/7 was settled twice"}},
		{"verdict", "lost", []string{"PASS", "1,234", "0", "what lost says holds"}},
		{"coverage", "kills mid-job", []string{"12", "15", "no"}},
		{"coverage", "retries", []string{"1,500", "–", ""}},
		{"coverage", "recovery after a kill, p95", []string{"3.46 s", "3 s", "FAIL"}},
		{"coverage", "from the last fault until all was at rest", []string{"–", "20 s", "UNKNOWN"}},
		{"coverage", "settled jobs a second", []string{"318.25"}},
		{"coverage", "of_a_later_judge", []string{"7"}},
		{"recoveries", "kill until noticed", []string{"1 s", "1 s", "1 s"}},
		{"recoveries", "noticed until condemned", []string{"1 s", "1 s", "1 s"}},
		{"recoveries", "condemned until the last job ran again", []string{"500 ms", "500 ms", "500 ms"}},
		{"recoveries", "kill until the last job ran again", []string{"2.5 s", "2.5 s", "2.5 s"}},
		{"recoveries", "4", []string{"12 s", "kill", "n7", "9", "1 s", "2 s", "2.5 s", ""}},
		{"late", "2 ms", []string{"810"}},
		{"duplicates", "mail/j", []string{"n7 was killed", "4", "2 runs, two at the same time n7, attempt 2, fence 99: from 1 s, ran 1 s, ok n8, attempt 0, fence 0: from 0 s, its end was never written"}},
		{"faults", "4", []string{"18 s", "redis-pause", "holder", "n5", "3 s", "3", "yes", ""}},
		{"machine", "240", []string{"119 µs", "237 µs", "239 µs", "1", "5.5 MiB"}},
	} {
		if got := row(t, byID(t, root, tt.section), tt.row); !slices.Equal(got[1:], tt.want) {
			t.Errorf("%s, %s: %q, want %q", tt.section, tt.row, got[1:], tt.want)
		}
	}
	head := words(all(root, "header")[0])
	for _, want := range []string{"FAIL Chaos run kills, seed 42", "18 hold, 1 broken", "12 faults struck, 1 kills", "settlement: 3 violations"} {
		if !strings.Contains(head, want) {
			t.Errorf("the head does not say %q: %s", want, head)
		}
	}
	if got := words(byID(t, root, "repeat")); !strings.HasSuffix(got, h.Run.Command) {
		t.Errorf("the command is missing: %q", got)
	}
	if facts := words(byID(t, root, "run")); !strings.Contains(facts, "v0.3.0 abc1234") || !strings.Contains(facts, "handlers run for 20 ms to 400 ms") {
		t.Errorf("facts of the run are missing: %s", facts)
	}
}

func TestNothingOfARunBecomesMarkup(t *testing.T) {
	t.Parallel()
	h, v := aRun(20, 100)
	poison(reflect.ValueOf(h.Run.Settings.Queues))
	for _, s := range []*string{&h.Run.Scenario, &h.Run.Command, &h.Run.Commit, &h.Run.Redis, &h.Run.Settings.Topology, &h.Run.Loss.Why} {
		*s = nasty
	}
	h.Run.Loss.Window = 1
	v.Why = []string{nasty}
	poison(reflect.ValueOf(v.Invariants))
	poison(reflect.ValueOf(v.Coverage))
	poison(reflect.ValueOf(v.Bars))
	poison(reflect.ValueOf(v.Kills))
	poison(reflect.ValueOf(v.Duplicates))
	for i := range h.Samples {
		h.Samples[i].Sweeper = nasty
	}
	for i := range h.Strikes {
		s := &h.Strikes[i]
		s.Kind, s.Aim, s.Target, s.Session, s.Note = nasty, nasty, nasty, nasty, nasty
	}
	v.Invariants[0].Details, v.Lost = []string{nasty}, []string{nasty}
	v.Measures[nasty] = 1
	root, text := written(t, h, v)
	if scripts := all(root, "script"); len(scripts) > 0 || strings.Contains(text, "<script") {
		t.Error("a name became a script")
	}
	for _, section := range []string{"run", "verdict", "coverage", "time", "recoveries", "duplicates", "faults", "repeat"} {
		if !strings.Contains(words(byID(t, root, section)), nasty) {
			t.Errorf("section %q does not show the name as it is", section)
		}
	}
}

// poison gives every exported text below v a name that is markup.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			poison(v.Field(i))
		}
	case reflect.String:
		v.SetString(nasty)
	}
}

func TestThePageAsksNobodyForAnything(t *testing.T) {
	t.Parallel()
	h, v := aRun(75, 500)
	root, text := written(t, h, v)
	for _, tag := range []string{"script", "link", "img", "iframe", "object", "embed", "image", "use", "base", "form"} {
		if n := len(all(root, tag)); n > 0 {
			t.Errorf("the page has %d elements %q", n, tag)
		}
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			outside := (a.Key == "href" || a.Key == "src") && !strings.HasPrefix(a.Val, "#")
			if outside || strings.HasPrefix(a.Key, "on") || strings.Contains(a.Val, "://") || strings.Contains(a.Val, "url(") {
				t.Errorf("<%s %s=%q> may ask somebody, or run something", n.Data, a.Key, a.Val)
			}
		}
	}
	for _, bad := range []string{"@import", "url(", "http://", "https://"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if !strings.Contains(text, `content="default-src 'none'; style-src 'unsafe-inline'"`) {
		t.Error("no policy forbids requests")
	}
}

func TestChartsAndTablesSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	h, v := aRun(75, 500)
	root, text := written(t, h, v)
	charts := all(root, "svg")
	if len(charts) != 4 {
		t.Errorf("%d charts, want timeline, kills and two histograms", len(charts))
	}
	for _, c := range charts {
		for id := range strings.FieldsSeq(attr(c, "aria-labelledby")) {
			if words(byID(t, root, id)) == "" {
				t.Errorf("%s is empty", id)
			}
		}
		if attr(c, "role") != "img" || attr(c, "aria-labelledby") == "" {
			t.Errorf("a chart is no named image: %v", c.Attr)
		}
	}
	for _, table := range all(root, "table") {
		if len(all(table, "caption")) != 1 {
			t.Errorf("a table has no caption: %s", words(table))
		}
		for _, th := range all(table, "th") {
			if attr(th, "scope") == "" {
				t.Errorf("the header %q has no scope", words(th))
			}
		}
	}
	seen := map[string]bool{}
	for n := range root.Descendants() {
		if id := attr(n, "id"); id != "" && seen[id] {
			t.Errorf("the id %q is there twice", id)
		} else {
			seen[id] = true
		}
	}
	if strings.Contains(text, "rgb(1,0,") {
		t.Error("a chart kept a stand-in for a colour")
	}
	for i := inkText; i <= inkLaneB; i++ {
		if !strings.Contains(styleText, inkNames[i]+":") || strings.Count(styleText, inkNames[i]+":") < 2 {
			t.Errorf("ink %q has no colour in light and dark", inkNames[i])
		}
	}
}

func TestWhatDidNotHappenHasASentence(t *testing.T) {
	t.Parallel()
	h := &history.History{}
	root, _ := written(t, h, &check.Verdict{Verdict: check.Unknown})
	for section, want := range map[string]string{
		"coverage":   "No figure could be taken.",
		"time":       "there is no timeline",
		"recoveries": "No node that held jobs was killed",
		"late":       "lateness is not known",
		"duplicates": "No job ran twice",
		"faults":     "No fault struck.",
		"machine":    "nobody knows how busy the machine was",
		"repeat":     "does not say which command",
	} {
		if got := words(byID(t, root, section)); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", section, got, want)
		}
	}
	h, v := aRun(20, 10)
	h.Samples = nil
	for i := range v.Kills {
		v.Kills[i].Free = false
	}
	root, _ = written(t, h, v)
	if got := words(byID(t, root, "time")); !strings.Contains(got, "No samples were taken") || len(all(root, "svg")) == 0 {
		t.Errorf("without samples: %q", got)
	}
	if got := words(byID(t, root, "recoveries")); !strings.Contains(got, "No kill counts") {
		t.Errorf("without a kill that counts: %q", got)
	}
}

func TestALongRunMakesAShortPage(t *testing.T) {
	t.Parallel()
	h, v := aRun(3600, 20_000)
	long := strings.Repeat("a long text ", 1000)
	for i := range v.Invariants {
		v.Invariants[i].Verdict, v.Invariants[i].Count = check.Fail, 500
		for range check.MostDetails {
			v.Invariants[i].Details = append(v.Invariants[i].Details, long)
		}
	}
	for len(v.Duplicates) < check.MostDuplicates {
		v.Duplicates = append(v.Duplicates, check.Duplicate{ID: strings.Repeat("x", 100), Queue: "mail", Cause: long, Runs: make([]check.Span, 50)})
	}
	for i := range h.Strikes {
		h.Strikes[i].Note = long
	}
	root, text := written(t, h, v)
	t.Logf("%d faults, %d kills, %d samples: %d bytes", len(h.Strikes)/5, len(v.Kills), len(h.Samples), len(text))
	if len(text) > 1<<20 {
		t.Errorf("the page has %d bytes, want less than 1 MiB", len(text))
	}
	for section, want := range map[string]string{
		"duplicates": fmt.Sprintf("The first %d are here", mostDuplicates),
		"faults":     fmt.Sprintf("The first %d are here", mostFaults),
		"recoveries": fmt.Sprintf("%d of 360 kills", mostKills),
	} {
		if got := words(byID(t, root, section)); !strings.Contains(got, want) {
			t.Errorf("%s does not say that it was cut: want %q in %s", section, want, cut(got, 600))
		}
	}
}
