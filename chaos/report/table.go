package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kelpiehq/kelpie/chaos/check"
)

// mostLines bounds the details of one rule in the table.
const mostLines = 5

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
	barTable(&b, v)
	_, err := w.Write(b.Bytes())
	return err
}

func ruleTable(w io.Writer, rules []check.Invariant) {
	t := columns(w, "\nINVARIANT\tVERDICT\tCHECKED\tVIOLATIONS")
	for _, r := range rules {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", plain(r.Name), r.Verdict, count(r.Checked), count(r.Count))
	}
	t.Flush()
	for _, r := range rules {
		if r.Verdict != check.Fail {
			continue
		}
		fmt.Fprintf(w, "\n%s is broken: it must hold that %s\n", plain(r.Name), plain(r.Sentence))
		for _, detail := range r.Details[:min(len(r.Details), mostLines)] {
			fmt.Fprintf(w, "  %s\n", tame(detail))
		}
		if more := r.Count - min(len(r.Details), mostLines); more > 0 {
			fmt.Fprintf(w, "  and %s more\n", count(more))
		}
	}
}

// coverageTable leaves out what neither happened nor was asked for.
func coverageTable(w io.Writer, all []check.Coverage) {
	t := columns(w, "\nCOVERAGE\tHAPPENED\tNEEDED\t")
	for _, c := range all {
		if c.Have == 0 && c.Need == 0 {
			continue
		}
		need, short := "-", ""
		if c.Need > 0 {
			need = count(c.Need)
		}
		if c.Have < c.Need {
			short = "too few"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", plain(c.Name), count(c.Have), need, short)
	}
	t.Flush()
}

func barTable(w io.Writer, v *check.Verdict) {
	bars := map[string]check.Bar{}
	for _, b := range v.Bars {
		bars[b.Measure] = b
	}
	t := columns(w, "\nFIGURE\tMEASURED\tAT MOST\t")
	for _, name := range measureNames(v) {
		value, most, verdict := "-", "-", ""
		if have, ok := v.Measures[name]; ok {
			value = figure(name, have)
		}
		if bar, ok := bars[name]; ok {
			most, verdict = figure(name, bar.Most), bar.Verdict
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", plain(meaning(name)), value, most, verdict)
	}
	t.Flush()
}

// columns starts a table whose columns are as wide as what is in them.
func columns(w io.Writer, head string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, strings.TrimRight(head, "\t"))
	return t
}

// tame makes a text of a run fit for a terminal.
func tame(text string) string { return cut(plain(text), mostText) }
