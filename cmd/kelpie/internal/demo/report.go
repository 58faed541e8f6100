package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// report is how the demo ended.
type report struct {
	verdict
	kills   []kill
	changes int // of the sweeper
	store   string
	took    time.Duration
}

// millis shows a duration in milliseconds.
func millis(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// table writes the closing table.
func (r report) table(w io.Writer) error {
	var b strings.Builder
	row := func(what string, value any, notes ...string) {
		line := fmt.Sprintf("  %-37s %9v   %s", what, value, strings.Join(notes, ", "))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&b, "\n  What Enqueue returned and the receiver saw, %s, %.1f s\n\n", r.store, r.took.Seconds())
	row("accepted", r.accepted)
	row("delivered", r.delivered)
	row("dead", r.dead, fmt.Sprintf("%d to be refused for good", r.refused))
	row("lost", r.lost)
	row("delivered more than once", r.duplicates, r.duplicateNote())
	row("with other bytes than enqueued", r.wrong)
	for i, k := range r.kills {
		took := "never"
		if d := r.recovery[i]; d != never {
			took = fmt.Sprintf("%.2f s", d.Seconds())
		}
		row("recovery from kill -9 of "+k.node, took, "held "+count(len(k.held), "job")+sweptNote(k))
	}
	row("changes of the sweeper", r.changes)
	r.lateRows(row)
	row("early", r.early)
	b.WriteString("\n")
	if r.strained {
		b.WriteString("  The machine was busy: its own timers came late, so lateness is not judged.\n")
	}
	if len(r.broken) == 0 {
		b.WriteString("  Nothing was lost, and all promises held.\n")
	} else {
		b.WriteString("  FAILED\n")
		for _, sentence := range r.broken {
			b.WriteString("  - " + sentence + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r report) duplicateNote() string {
	switch {
	case r.duplicates == 0:
		return ""
	case r.unhurt == 0:
		return "all held by a killed node"
	}
	return fmt.Sprintf("%d not held by a killed node", r.unhurt)
}

func sweptNote(k kill) string {
	if k.sweeper {
		return ", the sweeper"
	}
	return ""
}

func (r report) lateRows(row func(string, any, ...string)) {
	for _, l := range []struct {
		what string
		spread
	}{
		{"late, first delivery", r.late},
		{"late, due while no sweeper lived", r.lateAlone},
		{"late, a plain timer of the demo", r.strain},
	} {
		if l.n == 0 {
			continue
		}
		row(l.what+", p50", millis(l.p50), fmt.Sprintf("of %d", l.n))
		row(strings.Repeat(" ", len(l.what)+2)+"p99", millis(l.p99))
		row(strings.Repeat(" ", len(l.what)+2)+"max", millis(l.max))
	}
}

// spreadJSON is a spread in milliseconds; null where nothing was measured.
type spreadJSON struct {
	P50 *float64 `json:"p50"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
}

func (s spread) json() spreadJSON {
	if s.n == 0 {
		return spreadJSON{}
	}
	return spreadJSON{tenths(s.p50), tenths(s.p99), tenths(s.max)}
}

func tenths(d time.Duration) *float64 {
	ms := math.Round(float64(d)/float64(time.Millisecond)*10) / 10
	return &ms
}

// json writes the closing table as one object. A recovery that never ended is
// null.
func (r report) json(w io.Writer) error {
	recovery := make([]*int64, len(r.recovery))
	for i, d := range r.recovery {
		if d != never {
			ms := d.Milliseconds()
			recovery[i] = &ms
		}
	}
	return json.NewEncoder(w).Encode(struct {
		Accepted   int        `json:"accepted"`
		Delivered  int        `json:"delivered"`
		Dead       int        `json:"dead"`
		Lost       int        `json:"lost"`
		Duplicates int        `json:"duplicates"`
		Early      int        `json:"early"`
		Recovery   []*int64   `json:"recovery_ms"`
		Late       spreadJSON `json:"lateness_ms"`
		LateAlone  spreadJSON `json:"lateness_after_sweeper_kill_ms"`
		LateJudged bool       `json:"lateness_judged"`
		Changes    int        `json:"sweeper_changes"`
		Store      string     `json:"store"`
	}{
		r.accepted, r.delivered, r.dead, r.lost, r.duplicates, r.early, recovery,
		r.late.json(), r.lateAlone.json(), r.judged, r.changes, r.store,
	})
}
