package check

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// Kinds of faults, by what they can do. Package fault has them all.
var (
	// onWays keep a node from Redis. Those of commands do it to beats only.
	onWays     = []string{"cut-redis", "half-open", "deaf", "dumb", "frozen", "cut", "unplug"}
	onCommands = []string{"hold", "late", "lose"}
	onGossip   = []string{"cut-gossip", "gossip-one-way", "gossip-loss", "gossip-duplicate", "gossip-delay"}
	// onRedis keep all nodes from Redis, or Redis from writing.
	onRedis = []string{"redis-kill", "redis-loading", "redis-pause", "redis-full", "redis-disk", "redis-busy", "flush-all", "rollback", "failover"}
	// losing can cost Redis what it has acknowledged.
	losing = []string{"redis-kill", "redis-loading", "redis-disk", "flush-all", "rollback", "failover"}
)

const (
	never     = math.MaxInt64
	clockSlop = 100_000 // µs: what two clocks may differ beside the error of reading them
	aftermath = 5 * time.Second
)

// blow is one fault as it happened.
type blow struct {
	n          int
	kind       string
	plan       history.Fault
	begin, end int64 // T; end is never where it is missing
	heal       int64
	hits       []history.Strike
	count      int
	ill        bool // the set-up was broken right before or after it
}

// faults is all that broke, in the order of their numbers.
type faults struct {
	blows         []*blow
	silence       time.Duration
	grace         int64 // µs: how long after its end a fault may still cost a session its life
	keepsAllItAck bool  // a killed Redis loses nothing
}

func readFaults(h *history.History) *faults {
	s := h.Run.Settings
	f := &faults{
		silence: s.Silence, grace: (s.Silence + aftermath).Microseconds(),
		keepsAllItAck: strings.Contains(h.Run.Durable, "always"),
	}
	byN := map[int]*blow{}
	for _, s := range h.Strikes {
		b := byN[s.N]
		if b == nil {
			b = &blow{n: s.N, kind: s.Kind, begin: never, end: never, heal: never}
			byN[s.N] = b
			f.blows = append(f.blows, b)
		}
		b.add(s)
	}
	f.blows = slices.DeleteFunc(f.blows, func(b *blow) bool { return len(b.hits) == 0 })
	for _, p := range h.Run.Plan {
		if b := byN[p.N]; b != nil {
			b.plan = p
		}
	}
	return f
}

func (b *blow) add(s history.Strike) {
	switch s.Phase {
	case history.Begin:
		b.begin = min(b.begin, s.T)
	case history.Hit:
		b.begin = min(b.begin, s.T)
		b.hits = append(b.hits, s)
	case history.Heal:
		b.heal = s.T
	case history.End:
		b.end, b.count = s.T, b.count+s.Count
	case history.Health:
		b.ill = b.ill || !s.OK
	}
}

// is reports that the fault is of one of some kinds.
func (b *blow) is(kinds ...string) bool { return slices.Contains(kinds, b.kind) }

// loses reports that it may have cost Redis writes.
func (f *faults) loses(b *blow) bool {
	return b.is(losing...) && !(b.is("redis-kill", "redis-loading") && f.keepsAllItAck)
}

// silences reports that a hit of the fault can keep a session from beating.
func (f *faults) silences(b *blow, h history.Strike) bool {
	switch {
	case h.Signal != "", b.is(onWays...):
		return true
	case b.kind == "slow":
		return 2*b.plan.Delay >= f.silence
	case b.is(onCommands...):
		return b.plan.Script == "" || b.plan.Script == "beat"
	}
	return false
}

// nodeOf returns the name of the node that a session belongs to.
func nodeOf(session string) string {
	if i := strings.LastIndexByte(session, '-'); i > 0 {
		return session[:i]
	}
	return session
}

// struck returns the fault that can have made a session silent, so that it was
// rightly condemned at t; nil if there is none. born is when it was first seen.
func (f *faults) struck(session string, born, t int64) *blow {
	for _, b := range slices.Backward(f.blows) {
		for _, h := range b.hits {
			if h.T > t+clockSlop || !f.silences(b, h) {
				continue
			}
			mine := h.Session == session || h.Target == nodeOf(session)
			if h.Signal == "KILL" || h.Signal == "TERM" {
				if h.Session == session || mine && h.Session == "" && born <= h.T {
					return b
				}
			} else if mine && (b.end == never || t <= b.end+f.grace && born <= b.end) {
				return b
			}
		}
	}
	return nil
}

// lossAfter returns the first fault that can have cost Redis what it
// acknowledged at t, and when it did so.
func (f *faults) lossAfter(t int64) (*blow, int64) {
	for _, b := range f.blows {
		if !f.loses(b) {
			continue
		}
		for _, h := range b.hits {
			if end := max(h.T, min(b.end, h.T+aftermath.Microseconds())); t <= end {
				return b, h.T
			}
		}
	}
	return nil, 0
}

// lossWithin returns a fault that can have cost Redis writes between two times.
func (f *faults) lossWithin(from, to int64) *blow {
	for _, b := range f.blows {
		for _, h := range b.hits {
			if f.loses(b) && h.T >= from-clockSlop && h.T <= to+clockSlop {
				return b
			}
		}
	}
	return nil
}

// lossBefore reports that Redis may have lost writes before t.
func (f *faults) lossBefore(t int64) bool { return f.lossWithin(math.MinInt64/2, t) != nil }

// during returns a fault, of those that a test picks, that lasted at some time
// between from and to, its aftermath included.
func (f *faults) during(from, to int64, pick func(*blow) bool) *blow {
	for _, b := range f.blows {
		if b.begin <= to && (b.end == never || b.end+aftermath.Microseconds() >= from) && pick(b) {
			return b
		}
	}
	return nil
}

// harmsRedis and harmsLinks pick faults for during.
func harmsRedis(b *blow) bool { return b.is(onRedis...) }

func harmsLinks(b *blow) bool {
	return harmsRedis(b) || b.is(onWays...) || b.is(onCommands...) || b.is(onGossip...) || b.kind == "slow"
}
