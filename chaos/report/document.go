package report

import (
	"slices"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// Schema is the number of the schema of report.json that doc.go describes.
const Schema = 1

// Document is report.json.
type Document struct {
	*check.Verdict
	Schema  int         `json:"schema"`
	Run     history.Run `json:"run"`
	Faults  []Fault     `json:"faults"`
	Machine Machine     `json:"machine"`

	begin int64 // T from which the times of the report count
}

// NewDocument puts together what report.json holds. It changes neither h nor v.
func NewDocument(h *history.History, v *check.Verdict) *Document {
	from := begin(h)
	d := &Document{Verdict: whole(v), Schema: Schema, Run: h.Run, Faults: faults(h.Strikes, from), Machine: machine(h.Samples), begin: from}
	d.Run.Plan = list(d.Run.Plan)
	d.Run.Settings.Queues = list(d.Run.Settings.Queues)
	if d.Run.Needs == nil {
		d.Run.Needs = map[string]int{}
	}
	return d
}

// begin returns when a run began; of one that never came to its first job it is
// the first thing that is known.
func begin(h *history.History) int64 {
	switch {
	case h.Run.Begin > 0:
		return h.Run.Begin
	case len(h.Samples) > 0 && len(h.Strikes) > 0:
		return min(h.Samples[0].T, h.Strikes[0].T)
	case len(h.Samples) > 0:
		return h.Samples[0].T
	case len(h.Strikes) > 0:
		return h.Strikes[0].T
	}
	return 0
}

// whole returns a copy of v in which no list is null.
func whole(v *check.Verdict) *check.Verdict {
	w := *v
	w.Invariants, w.Coverage, w.Bars = list(v.Invariants), list(v.Coverage), list(v.Bars)
	w.Kills, w.Recovery, w.Lateness, w.Lost = list(v.Kills), list(v.Recovery), list(v.Lateness), list(v.Lost)
	w.Duplicates = slices.Clone(list(v.Duplicates))
	for i := range w.Duplicates {
		w.Duplicates[i].Runs = list(w.Duplicates[i].Runs)
	}
	if w.Measures == nil {
		w.Measures = map[string]float64{}
	}
	return &w
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Machine is how busy the runner's machine was. Times are µs.
type Machine struct {
	Samples  int   `json:"samples"`
	Silent   int   `json:"silent"`    // samples that Redis did not answer
	TimerP50 int64 `json:"timer_p50"` // how late a plain timer of the runner was
	TimerP99 int64 `json:"timer_p99"`
	TimerMax int64 `json:"timer_max"`
	Memory   int64 `json:"memory"` // the most that Redis used, bytes
}

func machine(samples []history.Sample) Machine {
	m := Machine{Samples: len(samples)}
	var late []int64
	for _, s := range samples {
		if s.Error != "" {
			m.Silent++
		}
		m.Memory = max(m.Memory, s.Memory)
		late = append(late, s.Timer)
	}
	m.TimerP50, m.TimerP99, m.TimerMax = quantile(late, 50), quantile(late, 99), quantile(late, 100)
	return m
}

// quantile returns the smallest of values that percent of a hundred of them do
// not exceed; 0 of none.
func quantile(values []int64, percent int) int64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (len(sorted)*percent + 99) / 100 // rounded up
	return sorted[max(rank, 1)-1]
}
