package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/go-analyze/charts"

	"github.com/kelpiehq/kelpie/chaos/check"
)

// stages are the parts of a recovery, in µs: until the death was noticed, from
// there until the session was condemned, from there until the last of its jobs
// ran again. One that is not known is part of the next.
type stages struct{ noticed, condemned, running, total int64 }

func stagesOf(k check.Recovery) stages {
	noticed := min(k.Noticed, k.Running)
	condemned := min(max(k.Condemned, noticed), k.Running)
	return stages{noticed: noticed, condemned: condemned - noticed, running: k.Running - condemned, total: k.Running}
}

// counted says whether a kill is one of those whose recovery is judged.
func counted(k check.Recovery) bool { return k.RedisUp && k.Free && k.Running > 0 }

// spread is a row of the table of recoveries.
type spread struct {
	Name          string
	P50, P95, Max string
}

// spreads sums up the stages of the kills that count.
func spreads(kills []check.Recovery) []spread {
	var noticed, condemned, running, total []int64
	for _, k := range kills {
		if !counted(k) {
			continue
		}
		s := stagesOf(k)
		noticed, condemned = append(noticed, s.noticed), append(condemned, s.condemned)
		running, total = append(running, s.running), append(total, s.total)
	}
	if len(total) == 0 {
		return nil
	}
	row := func(name string, us []int64) spread {
		return spread{name, took(quantile(us, 50)), took(quantile(us, 95)), took(quantile(us, 100))}
	}
	return []spread{
		row("kill until noticed", noticed), row("noticed until condemned", condemned),
		row("condemned until the last job ran again", running), row("kill until the last job ran again", total),
	}
}

// mostBars bounds the charts of single kills.
const mostBars = 40

// recoveries draws the kills that count, or the slowest of them, as bars of
// their stages.
func recoveries(kills []check.Recovery) (template.HTML, error) {
	var shown []check.Recovery
	for _, k := range kills {
		if counted(k) {
			shown = append(shown, k)
		}
	}
	if len(shown) == 0 {
		return "", nil
	}
	slices.SortStableFunc(shown, func(a, b check.Recovery) int { return cmp.Compare(b.Running, a.Running) })
	shown = shown[:min(len(shown), mostBars)]
	slices.SortStableFunc(shown, func(a, b check.Recovery) int { return cmp.Compare(a.T, b.T) })
	values := make([][]float64, 3) // whole ms: between 0 and 1 the library would begin the axis below 0
	labels := make([]string, len(shown))
	for i, k := range shown {
		s := stagesOf(k)
		labels[i] = fmt.Sprintf("#%d", k.N)
		for stage, us := range []int64{s.noticed, s.condemned, s.running} {
			values[stage] = append(values[stage], math.Round(float64(us)/1e3))
		}
	}
	opt := bars(values, labels)
	opt.StackSeries = charts.Ptr(true)
	opt.ValueFormatter = func(v float64) string { return trim(v/1e3) + " s" }
	return drawBars(opt, "recovery", "Recovery of each kill",
		"One bar for each kill, in the order of time: seconds until noticed, until condemned, until the last of its jobs ran again.")
}

// histogram draws how many values fell below each bound.
func histogram(buckets []check.Bucket, id, title string) (template.HTML, error) {
	counts := make([]float64, len(buckets))
	labels := make([]string, len(buckets))
	for i, b := range buckets {
		counts[i], labels[i] = float64(b.Count), "≤ "+took(int64(b.Most*1e3))
	}
	opt := bars([][]float64{counts}, labels)
	opt.ValueFormatter = short
	return drawBars(opt, id, title, "One bar for each range of time; its label is the upper bound, its height how many fell into it. The table below has the numbers.")
}

// bars sets a bar chart of series up.
func bars(values [][]float64, labels []string) charts.BarChartOption {
	opt := charts.NewBarChartOptionWithData(values)
	opt.Theme = theme()
	opt.Padding = charts.NewBox(8, 8, 8, 8)
	opt.Legend.Show = charts.Ptr(false)
	opt.CategoryAxis = charts.XAxisOption{Labels: labels, LabelFontStyle: font(inkMuted, smallest)}
	opt.ValueAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), LabelFontStyle: font(inkMuted, smallest)}}
	return opt
}

func drawBars(opt charts.BarChartOption, id, title, says string) (template.HTML, error) {
	p := canvas(width, 260)
	if err := p.BarChart(opt); err != nil {
		return "", fmt.Errorf("chart %q: %w", title, err)
	}
	return dry(p, id, title, says)
}
