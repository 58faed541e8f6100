package scenario

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

var mixed = Scenario{
	Name:     "mixed",
	Says:     "faults of all kinds, drawn by the seed: kills, stops, cuts, lost replies and trouble of Redis itself",
	Settings: long(short(5, 6_000, 90*time.Second), 5*time.Millisecond, 800*time.Millisecond),
	Server:   Server{Fsync: "always"}, Bars: []history.Bar{nothingLost, none("attempts_spent_graceful", "")},
	plan: planMixed,
}

// planMixed strikes once each what a run must have seen, in a drawn order, and
// fills the rest of the time with anything.
func planMixed(p *planner) {
	sure := []func(*planner) history.Fault{killHolder, stopLong, killSweeper, dropReply, killHolder, killProducer}
	p.rand.Shuffle(len(sure), func(i, j int) { sure[i], sure[j] = sure[j], sure[i] })
	for p.next(500*time.Millisecond, 3*time.Second) {
		draw := anything[p.rand.IntN(len(anything))]
		if len(sure) > 0 {
			draw, sure = sure[0], sure[1:]
		}
		p.whole(draw(p))
	}
	p.need("kills mid-job", 1)
	p.need("refused settlements", min(1, p.count("stop")))
	p.need("unknown outcomes", min(1, p.producers()))
}

// producers counts the faults of producers.
func (p *planner) producers() int {
	n := 0
	for _, f := range p.faults {
		if f.Aim == "producer" && f.Kind == "kill" {
			n++
		}
	}
	return n
}

func killHolder(p *planner) history.Fault {
	return history.Fault{Kind: "kill", Aim: "holder", For: p.between(0, 3*time.Second)}
}

func killSweeper(p *planner) history.Fault {
	return history.Fault{Kind: "kill", Aim: "sweeper", For: p.between(0, 2*time.Second)}
}

func killProducer(p *planner) history.Fault {
	return history.Fault{Kind: "kill", Aim: "producer", For: p.between(0, time.Second)}
}

func stopLong(p *planner) history.Fault {
	return history.Fault{Kind: "stop", Aim: "holder", For: p.between(7*time.Second, 9*time.Second)}
}

func dropReply(p *planner) history.Fault { return aimed("drop-reply", p.rand.IntN(7), 0) }

// anything is what the rest of a mixed run is drawn from.
var anything = []func(*planner) history.Fault{
	killHolder, killHolder, killSweeper, killProducer, stopLong, dropReply, dropReply,
	lasting("kill", "random", 0, 3*time.Second),
	lasting("kill", "others", 3*time.Second, 5*time.Second),
	lasting("stop", "random", time.Second, 3*time.Second),
	lasting("stop", "sweeper", 2*time.Second, 8*time.Second),
	lasting("term", "holder", 500*time.Millisecond, 2*time.Second),
	lasting("storm", "random", 3*time.Second, 5*time.Second),
	lasting("rolling", "all", 10*time.Second, 15*time.Second),
	lasting("cut-redis", "holder", 2*time.Second, 9*time.Second),
	lasting("cut-gossip", "random", 3*time.Second, 8*time.Second),
	lasting("gossip-one-way", "random", 3*time.Second, 8*time.Second),
	lasting("gossip-loss", "all", 3*time.Second, 8*time.Second),
	lasting("gossip-delay", "all", 3*time.Second, 8*time.Second),
	lasting("gossip-duplicate", "all", 3*time.Second, 8*time.Second),
	lasting("cut", "holder", 4*time.Second, 9*time.Second),
	lasting("half-open", "holder", 3*time.Second, 8*time.Second),
	lasting("deaf", "holder", 2*time.Second, 8*time.Second),
	lasting("dumb", "holder", 2*time.Second, 8*time.Second),
	lasting("slow", "all", 3*time.Second, 6*time.Second),
	lasting("redis-kill", "redis", 500*time.Millisecond, 3*time.Second),
	lasting("redis-pause", "redis", time.Second, 8*time.Second),
	lasting("redis-full", "redis", 2*time.Second, 5*time.Second),
	lasting("redis-busy", "redis", time.Second, 5*time.Second),
	lasting("script-flush", "redis", 0, 0),
	func(p *planner) history.Fault {
		return history.Fault{Kind: "term-kill", Aim: "holder", For: time.Second, Delay: p.between(0, 1500*time.Millisecond)}
	},
	func(p *planner) history.Fault { return aimed("lose", p.rand.IntN(7), 0) },
	delaying("late-copy"), delaying("late"), delaying("hold"),
}

// delaying is a fault of one command that comes later, or once more.
func delaying(kind string) func(*planner) history.Fault {
	return func(p *planner) history.Fault {
		return aimed(kind, p.rand.IntN(7), p.between(50*time.Millisecond, 3*time.Second))
	}
}

// lasting draws how long a fault takes. Those that need a delay of messages or a
// number of times have one.
func lasting(kind, aim string, from, to time.Duration) func(*planner) history.Fault {
	return func(p *planner) history.Fault {
		return history.Fault{
			Kind: kind, Aim: aim, For: p.between(from, to),
			Delay: p.between(50*time.Millisecond, 200*time.Millisecond), Times: 3 + p.rand.IntN(3),
		}
	}
}
