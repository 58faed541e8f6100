package report

import (
	"cmp"
	"html/template"
	"math"
	"slices"

	"github.com/go-analyze/charts"
)

// The timeline is one drawing, so that a fault is one band through all of its
// panels. The chart types of the library know neither bands nor steps nor times
// between two labels; its painter does all that is needed.
const (
	width      = 1200
	plotLeft   = 84
	plotRight  = width - 16
	panelTall  = 92
	panelGap   = 40 // above a panel, with its title
	rowTall    = 14 // of a family in the strip of faults
	stripTop   = 26
	stripTall  = int(families) * (rowTall + 2)
	laneTall   = 24
	axisTall   = 30
	smallest   = 8.25 // points: 11 dots
	labelSize  = 9.0  // points: 12 dots
	lineWidth  = 1.5
	titleAbove = 10 // of its panel
)

// panel is one figure over time.
type panel struct {
	title string
	lines []line
}

// line is one of a panel's figures; a panel with one needs no name for it.
type line struct {
	name   string
	ink    ink
	points []point
	area   bool
}

// timeline draws faults, figures and sweepers over the whole run.
func timeline(s series, faults []Fault, names map[string]string) (template.HTML, error) {
	panels := []panel{
		{"settled jobs a second", []line{{"", inkOne, s.settled, true}}},
		{"active jobs", []line{{"", inkOne, s.active, false}}},
		{"backlog", []line{{"waiting", inkOne, s.waiting, false}, {"delayed", inkTwo, s.delayed, false}}},
		{"members that nodes see", []line{{"the one that sees most", inkTwo, s.most, false}, {"the one that sees fewest", inkOne, s.least, false}}},
	}
	bottom := stripTop + stripTall + len(panels)*(panelGap+panelTall) + panelGap + laneTall
	d := drawing{canvas(width, bottom+axisTall), s.length}
	d.faults(faults, bottom)
	d.times(bottom)
	top := stripTop + stripTall
	for _, p := range panels {
		top += panelGap
		d.panel(p, top)
		top += panelTall
	}
	d.lane(s.terms, top+panelGap, names)
	return dry(d.Painter, "timeline", "Timeline of the run",
		"Faults as bands, and below them on the same time axis: settled jobs a second, active jobs, backlog, members, sweeper.")
}

// drawing knows where a time lies.
type drawing struct {
	*charts.Painter
	length int64
}

func (d drawing) x(at int64) int {
	at = min(max(at, 0), d.length)
	return plotLeft + int(math.Round(float64(at)/float64(d.length)*(plotRight-plotLeft)))
}

func (d drawing) fill(x1, y1, x2, y2 int, i ink) {
	d.FilledRect(x1, y1, x2, y2, i.color(), charts.ColorTransparent, 0)
}

func (d drawing) horizontal(y int, i ink) {
	d.LineStroke([]charts.Point{{X: plotLeft, Y: y}, {X: plotRight, Y: y}}, i.color(), 1)
}

// beside writes text that ends left of the plot.
func (d drawing) beside(text string, y int) {
	wide := d.MeasureText(text, 0, font(inkMuted, smallest)).Width()
	d.Text(text, plotLeft-8-wide, y+4, 0, font(inkMuted, smallest))
}

func (d drawing) title(text string, y int) {
	d.Text(text, plotLeft, y, 0, font(inkText, labelSize))
}

// band is a stretch of dots.
type band struct{ from, to int }

// bands returns where faults of one family lie, each at least two dots wide;
// those that touch are one, so their number is bounded by the width.
func (d drawing) bands(faults []Fault, of family) []band {
	var all []band
	for _, f := range faults {
		if familyOf(f.Kind) == of && !f.Skipped {
			from := d.x(f.Begin)
			all = append(all, band{from, max(d.x(f.End), from+2)})
		}
	}
	slices.SortFunc(all, func(a, b band) int { return cmp.Compare(a.from, b.from) })
	var merged []band
	for _, b := range all {
		if n := len(merged); n > 0 && b.from <= merged[n-1].to+1 {
			merged[n-1].to = max(merged[n-1].to, b.to)
			continue
		}
		merged = append(merged, b)
	}
	return merged
}

// faults draws the strip of faults, a row for each family, and their bands down to
// bottom.
func (d drawing) faults(faults []Fault, bottom int) {
	d.title("faults", stripTop-titleAbove)
	solid := [families]ink{inkProcess, inkNetwork, inkRedis}
	pale := [families]ink{inkProcessBand, inkNetworkBand, inkRedisBand}
	for of := range families {
		row := stripTop + int(of)*(rowTall+2)
		for _, b := range d.bands(faults, of) {
			d.fill(b.from, stripTop+stripTall, b.to, bottom, pale[of])
			d.fill(b.from, row, b.to, row+rowTall, solid[of])
		}
		d.beside(of.String(), row+rowTall/2)
		d.horizontal(row+rowTall, inkGrid)
	}
}

// times draws the time axis.
func (d drawing) times(bottom int) {
	d.horizontal(bottom, inkAxis)
	step := tick(d.length)
	for at := int64(0); at <= d.length; at += step {
		x := d.x(at)
		d.LineStroke([]charts.Point{{X: x, Y: bottom}, {X: x, Y: bottom + 5}}, inkAxis.color(), 1)
		text := clock(at, d.length)
		wide := d.MeasureText(text, 0, font(inkMuted, smallest)).Width()
		d.Text(text, min(x-wide/2, width-wide), bottom+20, 0, font(inkMuted, smallest))
	}
}

// tick returns the distance of the marks of a time axis, in µs: at most a dozen.
func tick(length int64) int64 {
	const second = int64(1e6)
	steps := []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 12 * 3600, 24 * 3600}
	for _, s := range steps {
		if length/(s*second) <= 12 {
			return s * second
		}
	}
	return length/12 + 1
}

func (d drawing) panel(p panel, top int) {
	d.title(p.title, top-titleAbove)
	d.legend(p, top-titleAbove)
	var all [][]point
	for _, l := range p.lines {
		all = append(all, l.points)
	}
	most := ceiling(highest(all...))
	marks := []float64{0, most / 2, most}
	if most/2 != math.Trunc(most/2) && most < 10 {
		marks = []float64{0, most}
	}
	for _, value := range marks {
		y := top + panelTall - int(value/most*panelTall)
		d.horizontal(y, inkGrid)
		d.beside(short(value), y)
	}
	if slices.IndexFunc(all, func(l []point) bool { return len(l) > 0 }) < 0 {
		d.Text("nothing was recorded", plotLeft+12, top+panelTall/2, 0, font(inkMuted, smallest))
	}
	for _, l := range p.lines {
		d.steps(l, top, most)
	}
}

// legend writes the names of a panel's lines behind its title.
func (d drawing) legend(p panel, y int) {
	x := plotLeft + d.MeasureText(p.title, 0, font(inkText, labelSize)).Width() + 24
	for _, l := range p.lines {
		if l.name == "" {
			continue
		}
		d.LineStroke([]charts.Point{{X: x, Y: y - 4}, {X: x + 16, Y: y - 4}}, l.ink.color(), 3)
		d.Text(l.name, x+22, y, 0, font(inkMuted, smallest))
		x += 22 + d.MeasureText(l.name, 0, font(inkMuted, smallest)).Width() + 24
	}
}

// steps draws a line that keeps each value until the next.
func (d drawing) steps(l line, top int, most float64) {
	var path []charts.Point
	bottom := top + panelTall
	flush := func() {
		if len(path) > 1 && l.area {
			ground := []charts.Point{{X: path[len(path)-1].X, Y: bottom}, {X: path[0].X, Y: bottom}}
			d.FillArea(append(slices.Clone(path), ground...), inkArea.color())
		}
		if len(path) > 0 {
			d.LineStroke(path, l.ink.color(), lineWidth)
		}
		path = nil
	}
	points := thin(l.points, max(1, d.length*2/(plotRight-plotLeft)))
	for i, p := range points {
		if p.gap {
			flush()
			continue
		}
		until := d.length
		if i+1 < len(points) {
			until = points[i+1].at
		}
		y := bottom - int(math.Round(p.value/most*panelTall))
		path = append(path, charts.Point{X: d.x(p.at), Y: y}, charts.Point{X: d.x(until), Y: y})
	}
	flush()
}

// lane draws who swept; neighbours differ in shade.
func (d drawing) lane(terms []term, top int, names map[string]string) {
	d.title("sweeper, one stretch for each epoch", top-titleAbove)
	shade, drawn := inkLaneA, plotLeft-1
	for _, t := range terms {
		from, to := d.x(t.from), d.x(t.to)
		if t.session == "" || to <= drawn || to == from {
			continue
		}
		d.fill(from, top, to, top+laneTall, shade)
		name := nameOf(t.session, names)
		if d.MeasureText(name, 0, font(inkText, smallest)).Width()+8 < to-from {
			d.Text(name, from+4, top+laneTall/2+4, 0, font(inkText, smallest))
		}
		drawn, shade = to, inkLaneA+inkLaneB-shade
	}
	if len(terms) == 0 {
		d.Text("nothing was recorded", plotLeft+12, top+laneTall/2+4, 0, font(inkMuted, smallest))
	}
}

// nameOf returns the name of the node behind a session, else the end of the
// session's id: its beginning is a time, which many share.
func nameOf(session string, names map[string]string) string {
	if name := names[session]; name != "" {
		return name
	}
	if len(session) > 8 {
		return "…" + session[len(session)-8:]
	}
	return session
}
