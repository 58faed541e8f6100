package scenario

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// tail is how long before the end of a run the last fault begins at the latest,
// so that work goes on around it.
const tail = 3 * time.Second

// planner collects the faults of a run. Its cursor is the time of the next one.
type planner struct {
	rand     *rand.Rand
	settings history.Settings
	foreign  bool
	end      time.Duration // 0: the plan says how long the run takes

	cursor time.Duration
	faults []history.Fault
	left   []string // kinds that were left out
	needs  map[string]int
}

// between draws a time, in whole milliseconds.
func (p *planner) between(from, to time.Duration) time.Duration {
	return from + time.Duration(p.rand.Int64N(int64((to-from)/time.Millisecond)+1))*time.Millisecond
}

// next moves the cursor by a drawn time. It is false where no further fault fits
// the run; the first one always does.
func (p *planner) next(from, to time.Duration) bool {
	p.cursor += p.between(from, to)
	if len(p.faults)+len(p.left) == 0 {
		return true
	}
	return p.end == 0 || p.cursor <= p.end-tail
}

// strike plans a fault at the cursor.
func (p *planner) strike(f history.Fault) {
	f.At, f.Draw = p.cursor, p.rand.Uint64()
	if p.foreign && strikesRedis[f.Kind] {
		if !slices.Contains(p.left, f.Kind) {
			p.left = append(p.left, f.Kind)
		}
		return
	}
	p.faults = append(p.faults, f)
}

// whole plans a fault and moves the cursor to its end.
func (p *planner) whole(f history.Fault) {
	p.strike(f)
	p.cursor += f.For
}

// count returns how many faults of some kinds are planned.
func (p *planner) count(kinds ...string) int {
	n := 0
	for _, f := range p.faults {
		if slices.Contains(kinds, f.Kind) {
			n++
		}
	}
	return n
}

// need says what the judge must have seen; 0 needs nothing.
func (p *planner) need(coverage string, n int) {
	if n > 0 {
		p.needs[coverage] = n
	}
}

// most is half of n, and 1 at least where n is: what is asked of faults that may
// find nobody.
func most(n int) int { return (n + 1) / 2 }

// finish orders and numbers the faults, asks for half of them at least to have hit
// something, and returns the settings.
func (p *planner) finish() history.Settings {
	slices.SortStableFunc(p.faults, func(a, b history.Fault) int { return int(a.At - b.At) })
	for i := range p.faults {
		p.faults[i].N = i + 1
	}
	p.need("faults", most(len(p.faults)))
	if p.end == 0 {
		p.settings.Duration = p.cursor + tail
	}
	return p.settings
}

// strikesRedis names the kinds that are done to Redis itself.
var strikesRedis = map[string]bool{
	"redis-kill": true, "redis-pause": true, "redis-full": true, "redis-disk": true, "redis-busy": true, "redis-loading": true,
	"script-flush": true, "flush-all": true, "rollback": true, "failover": true,
}
