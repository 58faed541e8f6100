package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// Judge looks at a whole history and says what it shows. It changes nothing in
// it and may be called by several goroutines at once.
func Judge(h *history.History) *Verdict {
	begun := time.Now()
	j := &judge{h: h, v: &Verdict{Measures: map[string]float64{}}, rules: map[string]*Invariant{}}
	for _, r := range rules {
		j.v.Invariants = append(j.v.Invariants, Invariant{Name: r.name, Sentence: r.sentence, Verdict: Pass})
	}
	for i := range j.v.Invariants {
		j.rules[j.v.Invariants[i].Name] = &j.v.Invariants[i]
	}
	j.faults = readFaults(h)
	j.log = j.replay()
	j.calls = readCalls(h)
	j.runs = j.readRuns()
	j.makers()
	j.room = j.occupancy()
	j.v.Measures[MeasureLost] = 0
	for _, look := range []func(){
		j.producers, j.handlers, j.atRest, j.counters, j.settled, j.linearizable, j.condemned, j.graceful, j.full,
		j.duplicates, j.recovery, j.lateness,
	} {
		look()
	}
	j.cover()
	j.conclude()
	j.v.Took = time.Since(begun).Microseconds()
	return j.v
}

// judge is one judgement in the making.
type judge struct {
	h      *history.History
	v      *Verdict
	rules  map[string]*Invariant
	faults *faults
	log    *replay
	calls  *calls
	runs   *runs
	room   *room
}

// checked counts what a rule was held against.
func (j *judge) checked(rule string, n int) { j.rules[rule].Checked += n }

// broke notes a violation of a rule.
func (j *judge) broke(rule, text string, args ...any) {
	r := j.rules[rule]
	r.Verdict = Fail
	r.Count++
	if len(r.Details) < MostDetails {
		r.Details = append(r.Details, fmt.Sprintf(text, args...))
	}
}

// unsure notes that the history cannot tell whether a rule holds.
func (j *judge) unsure(rule, why string) {
	r := j.rules[rule]
	if r.Verdict == Pass {
		r.Verdict = Unknown
	}
	if len(r.Details) < MostDetails {
		r.Details = append(r.Details, why)
	}
}

// conclude makes one verdict of all.
func (j *judge) conclude() {
	var failed, unknown []string
	for _, r := range j.v.Invariants {
		switch r.Verdict {
		case Fail:
			failed = append(failed, fmt.Sprintf("%s is violated %d times: %s", r.Name, r.Count, r.Details[0]))
		case Unknown:
			unknown = append(unknown, fmt.Sprintf("%s cannot be told: %s", r.Name, r.Details[0]))
		}
	}
	for _, b := range j.h.Run.Bars {
		bar := Bar{Measure: b.Measure, Most: b.Most, Why: b.Why, Verdict: Pass}
		have, measured := j.v.Measures[b.Measure]
		switch bar.Have = have; {
		case !measured:
			bar.Verdict = Unknown
			unknown = append(unknown, fmt.Sprintf("%s was not measured", b.Measure))
		case have > b.Most:
			bar.Verdict = Fail
			failed = append(failed, fmt.Sprintf("%s is %.6g, over %.6g", b.Measure, have, b.Most))
		}
		j.v.Bars = append(j.v.Bars, bar)
	}
	for _, c := range j.v.Coverage {
		if c.Have < c.Need {
			unknown = append(unknown, fmt.Sprintf("%s: %d, and %d are needed to prove anything", c.Name, c.Have, c.Need))
		}
	}
	unknown = append(unknown, j.broken()...)
	j.v.Verdict, j.v.Why = Pass, slices.Concat(failed, unknown)
	switch {
	case len(j.log.holes) > 0: // what breaks a rule may be what is missing
		j.v.Verdict, j.v.Why = Unknown, slices.Concat(unknown, failed)
	case len(failed) > 0:
		j.v.Verdict = Fail
	case len(unknown) > 0:
		j.v.Verdict = Unknown
	}
}

// broken says what was wrong with the run itself.
func (j *judge) broken() (why []string) {
	if j.h.Final == nil {
		why = append(why, "the run never came to its end")
	}
	if n := len(j.log.holes); n > 0 {
		why = append(why, fmt.Sprintf("the log is not whole, %d holes, the first one: %s", n, j.log.holes[0]))
	}
	for _, s := range j.h.Strikes {
		if s.Phase == history.Health && !s.OK {
			why = append(why, fmt.Sprintf("the set-up was broken around fault %d: %s", s.N, s.Note))
			break
		}
	}
	return why
}
