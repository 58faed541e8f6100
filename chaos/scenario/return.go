package scenario

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// ofReturn are about what comes after an outage of Redis.
var ofReturn = []Scenario{
	{
		Name: "redis-loading", Cases: []string{"C120"},
		Says:     "Redis is killed and loads its data for some seconds, answering LOADING, while nodes start: all wait and go on by themselves",
		Settings: herd(4, 3_000, 40*time.Second), Server: Server{Fsync: "always"},
		Bars: []history.Bar{nothingLost, none("condemned_unexplained", "only Redis was away"), none("attempts_spent_graceful", "")},
		plan: func(p *planner) {
			for p.next(3*time.Second, 5*time.Second) {
				if !p.foreign {
					p.strike(history.Fault{Kind: "term", Aim: "random", For: 500 * time.Millisecond})
				}
				p.whole(history.Fault{Kind: "redis-loading", Aim: "redis", For: p.between(4*time.Second, 8*time.Second)})
			}
			p.need("redis restarts", most(p.count("redis-loading")))
		},
	},
	{
		Name: "many-nodes", Cases: []string{"C126", "C128"},
		Says:     "twelve nodes lose Redis together and come back together: none is declared dead, and all is at rest within 15 s",
		Settings: herd(12, 4_000, 40*time.Second), Server: Server{Fsync: "always"},
		Bars: []history.Bar{nothingLost, none("condemned_unexplained", "only Redis was away"), none("reclaimed", "only Redis was away"),
			{Measure: "settle_ms", Most: 15_000, Why: "no pool stays broken"}},
		plan: func(p *planner) {
			p.next(4*time.Second, 6*time.Second)
			p.whole(history.Fault{Kind: "redis-kill", Aim: "redis", For: 20 * time.Second})
			p.need("redis outages", 1)
		},
	},
	{
		Name: "cable", Cases: []string{"C147"},
		Says:     "the cable of a node is pulled for longer than the lease (with --netns): it stops by itself, its jobs run elsewhere, it comes back",
		Settings: long(short(4, 1_200, 45*time.Second), 50*time.Millisecond, 2*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(2*time.Second, 4*time.Second) {
				p.whole(history.Fault{Kind: "unplug", Aim: "holder", For: p.between(8*time.Second, 11*time.Second)})
			}
			p.need("partitions", most(p.count("unplug")))
			p.need("reclaimed jobs", 1)
		},
	},
}
