package report

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"

	"github.com/go-analyze/charts"
)

// ink names a colour by a variable of the page's style. The chart library knows
// fixed colours only, so a chart is drawn with a stand-in for each ink, and dry
// puts the variable in its place. So one drawing serves light, dark and paper.
type ink uint8

const (
	inkText ink = iota + 1
	inkMuted
	inkGrid
	inkAxis
	inkOne
	inkTwo
	inkThree
	inkFour
	inkArea
	inkProcess
	inkNetwork
	inkRedis
	inkProcessBand
	inkNetworkBand
	inkRedisBand
	inkLaneA
	inkLaneB
)

var inkNames = map[ink]string{
	inkText: "--text", inkMuted: "--muted", inkGrid: "--grid", inkAxis: "--axis",
	inkOne: "--one", inkTwo: "--two", inkThree: "--three", inkFour: "--four", inkArea: "--area",
	inkProcess: "--process", inkNetwork: "--network", inkRedis: "--redis",
	inkProcessBand: "--process-band", inkNetworkBand: "--network-band", inkRedisBand: "--redis-band",
	inkLaneA: "--lane-a", inkLaneB: "--lane-b",
}

// color returns the stand-in.
func (i ink) color() charts.Color { return charts.ColorRGB(1, 0, uint8(i)) }

// css returns the variable.
func (i ink) css() template.CSS { return template.CSS("var(" + inkNames[i] + ")") }

var (
	standIn  = regexp.MustCompile(`rgb\(1,0,(\d+)\)`)
	fontName = regexp.MustCompile(`;font-family:[^;"]*`)
)

// font is text of a chart, in points of 96 dots an inch.
func font(i ink, size float64) charts.FontStyle {
	return charts.FontStyle{FontSize: size, FontColor: i.color()}
}

// dry makes a drawing part of the page: with the page's colours and fonts, a title
// and a description for readers who do not see it, and no name of a foreign host.
func dry(p *charts.Painter, id, title, says string) (template.HTML, error) {
	raw, err := p.Bytes()
	if err != nil {
		return "", fmt.Errorf("chart %q: %w", title, err)
	}
	head, body, ok := bytes.Cut(raw, []byte(">"))
	if !ok || !bytes.HasPrefix(head, []byte("<svg ")) {
		return "", errors.New("chart " + title + ": the library drew no SVG")
	}
	body = standIn.ReplaceAllFunc(body, func(m []byte) []byte {
		var i ink
		fmt.Sscanf(string(m), "rgb(1,0,%d)", &i)
		return []byte(i.css())
	})
	body = fontName.ReplaceAll(body, nil)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-labelledby="%s-title %s-says">`, p.Width(), p.Height(), id, id)
	fmt.Fprintf(&b, `<title id="%s-title">%s</title><desc id="%s-says">%s</desc>`, id, html.EscapeString(title), id, html.EscapeString(says))
	b.Write(body)
	return template.HTML(b.String()), nil
}

// canvas returns an empty drawing.
func canvas(width, height int) *charts.Painter {
	return charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: width, Height: height, Theme: theme()})
}

// theme colours what the library draws by itself.
func theme() charts.ColorPalette {
	return charts.MakeTheme(charts.ThemeOption{
		AxisStrokeColor: inkAxis.color(), AxisSplitLineColor: inkGrid.color(), BackgroundColor: charts.ColorTransparent,
		TextColor: inkMuted.color(), TextColorTitle: inkText.color(), TextColorMark: inkText.color(), TextColorLabel: inkText.color(),
		TextColorLegend: inkText.color(), TextColorXAxis: inkMuted.color(), TextColorYAxis: inkMuted.color(),
		SeriesColors: []charts.Color{inkOne.color(), inkTwo.color(), inkThree.color(), inkFour.color()},
	})
}
