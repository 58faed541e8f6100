package report

import (
	"cmp"
	"slices"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// Fault is what became of one fault of the plan. Times are µs after the run
// began.
type Fault struct {
	N       int      `json:"n"`
	Kind    string   `json:"kind"`
	Aim     string   `json:"aim"`
	Targets []string `json:"targets"` // nodes, "redis", pairs "a|b"
	Begin   int64    `json:"begin"`
	End     int64    `json:"end"`     // of its repair; Begin if that was never written
	Held    int      `json:"held"`    // jobs that the targets held when they were hit
	Sweeper bool     `json:"sweeper"` // a target held the sweeper lock
	Skipped bool     `json:"skipped"` // it struck nothing, Note says why
	Sick    string   `json:"sick"`    // "", "before" or "after": when the health around it was bad; before wins
	Note    string   `json:"note"`

	begun bool
}

// faults joins the lines of each fault, in the order in which they began; times
// count from from. Health that was asked for outside of any fault (N 0) is the
// judge's matter.
func faults(strikes []history.Strike, from int64) []Fault {
	found := map[int]*Fault{}
	var order []int
	for _, s := range strikes {
		if s.N == 0 {
			continue
		}
		f := found[s.N]
		if f == nil {
			at := max(0, s.T-from)
			f = &Fault{N: s.N, Targets: []string{}, Begin: at, End: at}
			found[s.N], order = f, append(order, s.N)
		}
		f.add(s, max(0, s.T-from))
	}
	all := make([]Fault, 0, len(order))
	for _, n := range order {
		all = append(all, *found[n])
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return cmp.Compare(a.Begin, b.Begin) })
	return all
}

func (f *Fault) add(s history.Strike, at int64) {
	if f.Kind == "" {
		f.Kind = s.Kind
	}
	if f.Aim == "" {
		f.Aim = s.Aim
	}
	if s.Note != "" && s.Phase != history.Health {
		f.Note = s.Note
	}
	switch s.Phase {
	case history.Begin:
		f.Begin, f.End, f.begun = at, at, true
	case history.Hit:
		f.Held += len(s.Held)
		f.Sweeper = f.Sweeper || s.Sweeper
		if s.Target != "" && !slices.Contains(f.Targets, s.Target) {
			f.Targets = append(f.Targets, s.Target)
		}
	case history.End:
		f.End = at
	case history.Skip:
		f.Skipped = true
	case history.Health:
		f.health(s)
	}
}

func (f *Fault) health(s history.Strike) {
	switch {
	case s.OK:
		return
	case !f.begun:
		f.Sick = "before"
	case f.Sick == "":
		f.Sick = "after"
	default:
		return
	}
	if f.Note == "" {
		f.Note = s.Note
	}
}

// family is what a fault breaks; it has a colour and a row in the timeline.
type family int

const (
	ofProcess family = iota
	ofNetwork
	ofRedis
	families // how many there are
)

func (f family) String() string { return [...]string{"processes", "network", "Redis"}[f] }

// Kinds of faults that break Redis or processes; all others break the network.
var (
	redisKinds = []string{
		"redis-kill", "redis-loading", "redis-pause", "redis-full", "redis-disk", "redis-busy",
		"script-flush", "flush-all", "rollback", "failover",
	}
	processKinds = []string{"kill", "term", "term-kill", "stop", "storm", "rolling", "last-words"}
)

func familyOf(kind string) family {
	switch {
	case slices.Contains(redisKinds, kind):
		return ofRedis
	case slices.Contains(processKinds, kind):
		return ofProcess
	}
	return ofNetwork
}
