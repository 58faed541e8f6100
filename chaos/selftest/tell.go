package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
)

// teller prints lines as trials begin and end.
type teller struct {
	out io.Writer
	of  int

	mu   sync.Mutex
	done int
}

func (t *teller) begins(x *trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "         %s: %s\n", x.name(), x.aim())
}

func (t *teller) ended(x *trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done++
	line := fmt.Sprintf("%3d/%-3d  %s: %s after %.0f s", t.done, t.of, x.name(), x.outcome(), x.took.Seconds())
	if fault := x.fault(); fault != "" {
		line += ": WRONG: " + fault
	}
	fmt.Fprintln(t.out, line)
}

// aim says what a trial is to show.
func (t *trial) aim() string {
	if t.sound() {
		return "all protections are there, scenario " + t.scenario
	}
	return t.bug.Says + ", scenario " + t.scenario
}

// outcome is the verdict and what it rests on.
func (t *trial) outcome() string {
	switch {
	case t.verdict == "":
		return "no verdict"
	case len(t.by) == 0:
		return t.verdict
	}
	return t.verdict + " by " + strings.Join(t.by, ", ")
}

// table prints what all trials came to, and reports whether each came out right.
func table(out io.Writer, trials []*trial) bool {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\n\tprotection that is missing\tscenario\tverdict\tviolated\ttook")
	wrong := 0
	for _, t := range trials {
		mark, name := "ok", t.bug.Name
		if t.fault() != "" {
			mark = "WRONG"
			wrong++
		}
		if t.sound() {
			name = "(none)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.0f s\n", mark, name, t.scenario, cmp.Or(t.verdict, "-"), cmp.Or(strings.Join(t.by, ", "), "-"), t.took.Seconds())
	}
	_ = w.Flush() // it is told to people: what cannot be written cannot be told either
	fmt.Fprintln(out)
	for _, t := range trials {
		if fault := t.fault(); fault != "" {
			fmt.Fprintf(out, "WRONG  %s: %s\n", t.name(), fault)
		}
	}
	if wrong == 0 {
		fmt.Fprintf(out, "All %d runs came out as they must.\n", len(trials))
	} else {
		fmt.Fprintf(out, "%d of %d runs did not come out as they must.\n", wrong, len(trials))
	}
	return wrong == 0
}
