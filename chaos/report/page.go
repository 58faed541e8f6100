package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

//go:embed page.html
var pageText string

//go:embed style.css
var styleText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"count":  count[int],
	"took":   took,
	"size":   size,
	"lower":  strings.ToLower,
	"figure": figure, "meaning": meaning,
	"short": func(text string) string { return cut(text, mostText) },
}).Parse(pageText))

// Bounds of the page; report.json has all that the judge kept.
const (
	mostText       = 400 // runes of a detail or note
	mostDuplicates = 200
	mostRuns       = 6 // of one duplicate
	mostKills      = 200
	mostFaults     = 500
	mostTerms      = 100
)

// page is what page.html shows.
type page struct {
	*Document
	Style    template.CSS
	Title    string
	Summary  string
	Key      []fact // the figures at the top
	About    []fact
	Settings []fact
	Figures  []fact // all measures

	Timeline template.HTML // "" if there is nothing to draw
	Terms    []termRow
	AllTerms int

	Spreads   []spread
	Recovered template.HTML
	KillHisto template.HTML
	KillRows  []killRow
	LateHisto template.HTML

	Repeats     []repeat
	Unexplained int

	FaultRows []faultRow
	MidJob    int // faults that hit jobs
	Skipped   int
}

type fact struct{ Name, Value string }

// render returns report.html.
func render(h *history.History, d *Document) ([]byte, error) {
	known := names(h, d.Verdict)
	s := seriesOf(h, d)
	p := page{
		Document: d, Style: template.CSS(styleText), Title: title(d.Run), Summary: summary(d),
		Key: keyFigures(d.Measures), About: about(d.Run), Settings: settings(d.Run), Figures: figures(d.Verdict),
		Spreads: spreads(d.Kills), KillRows: killRows(d),
		Repeats: repeats(d), FaultRows: faultRows(d),
	}
	p.Terms, p.AllTerms = termRows(s, known)
	for _, dup := range d.Duplicates {
		if dup.Cause == "" {
			p.Unexplained++
		}
	}
	for _, f := range d.Faults {
		if f.Skipped {
			p.Skipped++
		} else if f.Held > 0 {
			p.MidJob++
		}
	}
	if err := p.draw(s, known, len(h.Samples) > 0); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("%s: %w", HTMLFile, err)
	}
	return b.Bytes(), nil
}

// draw makes the charts; one without data stays empty.
func (p *page) draw(s series, known map[string]string, sampled bool) (err error) {
	if sampled || len(p.Faults) > 0 || len(s.settled) > 0 {
		if p.Timeline, err = timeline(s, p.Faults, known); err != nil {
			return err
		}
	}
	if p.Recovered, err = recoveries(p.Kills); err != nil {
		return err
	}
	if filled(p.Recovery) {
		if p.KillHisto, err = histogram(p.Recovery, "kills", "Histogram of recovery times"); err != nil {
			return err
		}
	}
	if filled(p.Lateness) {
		p.LateHisto, err = histogram(p.Lateness, "lateness", "Histogram of lateness")
	}
	return err
}

// filled says whether a histogram holds anything.
func filled(buckets []check.Bucket) bool {
	for _, b := range buckets {
		if b.Count > 0 {
			return true
		}
	}
	return false
}

func title(r history.Run) string {
	if r.Scenario == "" {
		return fmt.Sprintf("Chaos run, seed %d", r.Seed)
	}
	return fmt.Sprintf("Chaos run %s, seed %d", r.Scenario, r.Seed)
}

// summary is the sentence below the title.
func summary(d *Document) string {
	broken, open := 0, 0
	for _, i := range d.Invariants {
		switch i.Verdict {
		case check.Fail:
			broken++
		case check.Unknown:
			open++
		}
	}
	rules := fmt.Sprintf("%d invariants: %d hold", len(d.Invariants), len(d.Invariants)-broken-open)
	if broken > 0 {
		rules += fmt.Sprintf(", %d broken", broken)
	}
	if open > 0 {
		rules += fmt.Sprintf(", %d not decided", open)
	}
	return fmt.Sprintf("%s. %d faults struck, %d kills of nodes that held jobs.", rules, struck(d.Faults), len(d.Kills))
}

func struck(faults []Fault) int {
	n := 0
	for _, f := range faults {
		if !f.Skipped {
			n++
		}
	}
	return n
}
