package report

import (
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
}

// Fault is what became of one fault of the plan. Times are µs after the run's
// Begin.
type Fault struct {
	N       int      `json:"n"`
	Kind    string   `json:"kind"`
	Aim     string   `json:"aim"`
	Targets []string `json:"targets"` // nodes, "redis", pairs "a|b"
	Begin   int64    `json:"begin"`
	End     int64    `json:"end"`     // of its repair; Begin if the run ended before
	Held    int      `json:"held"`    // jobs that the targets held when they were hit
	Sweeper bool     `json:"sweeper"` // a target held the sweeper lock
	Skipped bool     `json:"skipped"` // it struck nothing, Note says why
	Sick    string   `json:"sick"`    // "", "before" or "after": when the health around it was bad; before wins
	Note    string   `json:"note"`
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

// NewDocument puts together what report.json holds. It changes neither h nor v.
func NewDocument(h *history.History, v *check.Verdict) *Document {
	return &Document{Verdict: v, Schema: Schema, Run: h.Run}
}
