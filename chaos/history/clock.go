package history

import (
	"slices"
	"sort"

	"golang.org/x/sys/unix"
)

// Now returns microseconds of this machine's monotonic clock. All processes of
// the machine share it, and no step of the wall clock moves it.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // the kernel has this clock, or Go would not run on it
	}
	return t.Nano() / 1000
}

// Clock translates between this machine's clock and Redis's. The zero value
// knows nothing.
type Clock struct{ ticks []Tick }

// NewClock returns a clock for ticks in any order.
func NewClock(ticks []Tick) *Clock {
	c := &Clock{ticks: slices.Clone(ticks)}
	slices.SortFunc(c.ticks, func(a, b Tick) int { return int(a.T - b.T) })
	return c
}

// Redis returns what Redis's clock showed at t, and by how much that may be
// wrong either way. ok is false where no pair is known.
func (c *Clock) Redis(t int64) (us, wrong int64, ok bool) {
	i := sort.Search(len(c.ticks), func(i int) bool { return c.ticks[i].T > t })
	best, ok := c.best(i)
	if !ok {
		return 0, 0, false
	}
	middle := (best.T + best.After) / 2
	return best.US + t - middle, (best.After-best.T+1)/2 + 1, true
}

// best returns the pair that was read fastest among those around i.
func (c *Clock) best(i int) (Tick, bool) {
	near := c.ticks[max(0, i-5):min(len(c.ticks), i+5)]
	if len(near) == 0 {
		return Tick{}, false
	}
	return slices.MinFunc(near, func(a, b Tick) int { return int((a.After - a.T) - (b.After - b.T)) }), true
}

// Local returns when this machine's clock was at us of Redis's.
func (c *Clock) Local(us int64) (t, wrong int64, ok bool) {
	i := sort.Search(len(c.ticks), func(i int) bool { return c.ticks[i].US > us })
	best, ok := c.best(i)
	if !ok {
		return 0, 0, false
	}
	return (best.T+best.After)/2 + us - best.US, (best.After-best.T+1)/2 + 1, true
}
