package check

import "github.com/kelpiehq/kelpie/chaos/history"

// Judge looks at a whole history and says what it shows. It changes nothing in
// it and may be called by several goroutines at once.
func Judge(h *history.History) *Verdict {
	v := &Verdict{Verdict: Unknown, Why: []string{"the judge is not built yet"}, Measures: map[string]float64{}}
	for _, r := range rules {
		v.Invariants = append(v.Invariants, Invariant{Name: r.name, Sentence: r.sentence, Verdict: Unknown})
	}
	for _, name := range coverages {
		v.Coverage = append(v.Coverage, Coverage{Name: name, Need: h.Run.Needs[name]})
	}
	return v
}
