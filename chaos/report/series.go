package report

import (
	"slices"
	"strconv"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// point says that a figure had this value from at on, in µs after the run began.
// A gap says that nobody knows it from there on.
type point struct {
	at    int64
	value float64
	gap   bool
}

// term is a time in which one session was seen as sweeper under one epoch. Without
// session there was none.
type term struct {
	from, to int64
	session  string
	epoch    int64
}

// series is what happened over time.
type series struct {
	length                   int64   // µs from the begin to the last thing that is known
	settled                  []point // jobs a second
	active, waiting, delayed []point
	least, most              []point // members that the nodes saw: who saw fewest, and most
	terms                    []term
}

// seriesOf takes the lines of the timeline from a history.
func seriesOf(h *history.History, d *Document) series {
	s := series{length: 1e6}
	for _, sample := range h.Samples {
		s.length = max(s.length, sample.T-d.begin)
		s.add(sample, max(0, sample.T-d.begin))
	}
	for _, f := range d.Faults {
		s.length = max(s.length, f.End)
	}
	settled := settlements(h, d.begin)
	for _, at := range settled {
		s.length = max(s.length, at)
	}
	s.settled = rates(settled, s.length)
	return s
}

func (s *series) add(sample history.Sample, at int64) {
	jobs := func(state string) point {
		return point{at: at, value: float64(sample.Jobs[state]), gap: sample.Error != ""}
	}
	s.active = append(s.active, jobs("active"))
	s.waiting = append(s.waiting, jobs("waiting"))
	s.delayed = append(s.delayed, jobs("delayed"))
	least, most := point{at: at, gap: len(sample.Members) == 0}, point{at: at, gap: len(sample.Members) == 0}
	first := true
	for _, n := range sample.Members {
		if first || float64(n) < least.value {
			least.value = float64(n)
		}
		most.value, first = max(most.value, float64(n)), false
	}
	s.least, s.most = append(s.least, least), append(s.most, most)
	if sample.Error != "" {
		return // nobody could say who sweeps: the term before goes on
	}
	if n := len(s.terms); n > 0 {
		last := &s.terms[n-1]
		last.to = at
		if last.session == sample.Sweeper && last.epoch == sample.Epoch {
			return
		}
	}
	s.terms = append(s.terms, term{from: at, to: at, session: sample.Sweeper, epoch: sample.Epoch})
}

// settlements returns when jobs were settled, in µs after from, as Redis wrote it.
func settlements(h *history.History, from int64) []int64 {
	var all []int64
	for _, step := range h.Steps {
		at, known := int64(0), false
		for _, m := range step.Moves {
			if m.What != history.Settle {
				continue
			}
			if !known {
				at, known = local(h, step), true
			}
			all = append(all, max(0, at-from))
		}
	}
	return all
}

// local returns when a step happened by this machine's clock; where the two clocks
// were never compared it is when the collector read it.
func local(h *history.History, step history.Step) int64 {
	if h.Clock != nil {
		if t, _, ok := h.Clock.Local(step.US); ok {
			return t
		}
	}
	return step.T
}

// rates counts events in equal pieces of the time, as steps of events a second.
func rates(at []int64, length int64) []point {
	if len(at) == 0 {
		return nil
	}
	const pieces = 200
	wide := max(length/pieces, 500_000)
	counts := make([]int, length/wide+1)
	for _, t := range at {
		counts[min(int(t/wide), len(counts)-1)]++
	}
	points := make([]point, len(counts))
	for i, n := range counts {
		from := int64(i) * wide
		took := min(wide, max(length-from, wide/10)) // the last piece is shorter
		points[i] = point{at: from, value: float64(n) * 1e6 / float64(took)}
	}
	return points
}

// names finds the names of nodes behind sessions: strikes say them, and so does a
// handler that ran under the fence of a session's claim.
func names(h *history.History, v *check.Verdict) map[string]string {
	found := map[string]string{}
	claims := map[string]string{} // queue and fence -> session
	for _, step := range h.Steps {
		for _, m := range step.Moves {
			if m.What == history.Claim {
				claims[step.Queue+" "+strconv.FormatInt(m.Fence, 10)] = m.Session
			}
		}
	}
	for _, m := range h.Marks {
		if session := claims[m.Queue+" "+strconv.FormatInt(m.Fence, 10)]; session != "" {
			found[session] = m.Node
		}
	}
	for _, s := range h.Strikes {
		if s.Session != "" && s.Target != "" {
			found[s.Session] = s.Target
		}
	}
	for _, k := range v.Kills {
		if k.Session != "" {
			found[k.Session] = k.Node
		}
	}
	return found
}

// highest returns the largest value of some lines.
func highest(lines ...[]point) float64 {
	most := 0.0
	for _, line := range lines {
		for _, p := range line {
			if !p.gap {
				most = max(most, p.value)
			}
		}
	}
	return most
}

// thin keeps one point for every stride of time, the last that is there, and
// those where a gap begins or ends.
func thin(line []point, stride int64) []point {
	var kept []point
	for _, p := range line {
		if n := len(kept); n > 0 && kept[n-1].gap == p.gap && (p.gap || kept[n-1].at/stride == p.at/stride) {
			if !p.gap {
				kept[n-1].value = p.value
			}
			continue
		}
		kept = append(kept, p)
	}
	return slices.Clip(kept)
}
