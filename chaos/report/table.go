package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kelpiehq/kelpie/chaos/check"
)

// Bounds of the table.
const (
	mostLines = 5  // details of one rule
	mostCell  = 60 // runes
)

// Table writes the verdict as text: what keeps the run from PASS, the rules with
// their counts and the first details of broken ones, what had to happen, the
// figures. It has no colours. Control characters in names become spaces, and long
// texts are cut, so that nothing of a run can play tricks with a terminal.
func Table(w io.Writer, v *check.Verdict) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "verdict: %s\n", v.Verdict)
	for _, why := range v.Why {
		fmt.Fprintf(&b, "  %s\n", tame(why))
	}
	ruleTable(&b, v.Invariants)
	coverageTable(&b, v.Coverage)
	figureTable(&b, v)
	_, err := w.Write(b.Bytes())
	return err
}

func ruleTable(w io.Writer, rules []check.Invariant) {
	g := grid{{"INVARIANT", "VERDICT", "CHECKED", "VIOLATIONS"}}
	for _, r := range rules {
		g = append(g, []string{r.Name, r.Verdict, count(r.Checked), count(r.Count)})
	}
	g.write(w, 2, 3)
	for _, r := range rules {
		if r.Verdict != check.Fail {
			continue
		}
		fmt.Fprintf(w, "\n%s is broken. It must hold that %s.\n", tame(r.Name), tame(r.Sentence))
		shown := r.Details[:min(len(r.Details), mostLines)]
		for _, detail := range shown {
			fmt.Fprintf(w, "  %s\n", tame(detail))
		}
		if more := r.Count - len(shown); more > 0 {
			fmt.Fprintf(w, "  and %s more\n", count(more))
		}
	}
}

// coverageTable leaves out what neither happened nor was asked for.
func coverageTable(w io.Writer, all []check.Coverage) {
	g := grid{{"COVERAGE", "HAPPENED", "NEEDED", ""}}
	for _, c := range all {
		if c.Have == 0 && c.Need == 0 {
			continue
		}
		need, enough := "-", ""
		if c.Need > 0 {
			need = count(c.Need)
		}
		if c.Have < c.Need {
			enough = "too few"
		}
		g = append(g, []string{c.Name, count(c.Have), need, enough})
	}
	g.write(w, 1, 2)
}

func figureTable(w io.Writer, v *check.Verdict) {
	bars := map[string]check.Bar{}
	for _, b := range v.Bars {
		bars[b.Measure] = b
	}
	g := grid{{"FIGURE", "MEASURED", "AT MOST", ""}}
	for _, name := range measureNames(v) {
		value, most, verdict := "-", "-", ""
		if have, ok := v.Measures[name]; ok {
			value = figure(name, have)
		}
		if bar, ok := bars[name]; ok {
			most, verdict = figure(name, bar.Most), bar.Verdict
		}
		g = append(g, []string{meaning(name), value, most, verdict})
	}
	g.write(w, 1, 2)
}

// grid is rows of cells below a head.
type grid [][]string

// write writes the rows after an empty line, each column as wide as its widest
// cell, the ones named right aligned to the right. Without rows it writes nothing.
func (g grid) write(w io.Writer, right ...int) {
	if len(g) < 2 {
		return
	}
	wide := make([]int, len(g[0]))
	for _, row := range g {
		for i := range row {
			row[i] = cut(plain(row[i]), mostCell)
			wide[i] = max(wide[i], utf8.RuneCountInString(row[i]))
		}
	}
	fmt.Fprintln(w)
	for _, row := range g {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell))
			if slices.Contains(right, i) {
				cell, pad = pad+cell, ""
			}
			line.WriteString(cell + pad + "   ")
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// tame makes a text of a run fit for a terminal.
func tame(text string) string { return cut(plain(text), mostText) }
