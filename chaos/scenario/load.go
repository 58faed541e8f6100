package scenario

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// ofLoad strike little: the load is the fault.
var ofLoad = []Scenario{
	{
		Name: "promote-load", Cases: []string{"C048", "C049"},
		Says:     "thousands of jobs are due at the same moment, and the sweeper is killed just then: all are promoted once, and what is due later is not kept waiting",
		Settings: together(herd(3, 12_000, 30*time.Second), 800, 12*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			p.cursor = 12 * time.Second
			p.next(0, 300*time.Millisecond)
			p.whole(history.Fault{Kind: "kill", Aim: "sweeper", For: 2 * time.Second})
			p.need("promotions", p.settings.Jobs/2)
		},
	},
	{
		Name: "producers", Cases: []string{"C029"},
		Says:     "producers are killed in the middle of a call: what they did not hear of is there or not, once, and whole",
		Settings: herd(3, 5_000, 30*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(2*time.Second, 4*time.Second) {
				p.whole(history.Fault{Kind: "kill", Aim: "producer", For: time.Second})
			}
			p.need("unknown outcomes", 1)
		},
	},
	{
		Name: "calm", Says: "nothing is struck: no duplicate, no late start, no refused settlement, or the set-up itself is at fault",
		Settings: herd(3, 3_000, 15*time.Second),
		Bars:     []history.Bar{nothingLost, none("duplicates", ""), none("condemned_unexplained", ""), none("stale_refused", ""), none("settled_again", "")},
		plan:     func(*planner) {},
	},
}

// together makes a share of the jobs due at one moment.
func together(s history.Settings, share int, later time.Duration) history.Settings {
	s = delayed(long(s, time.Millisecond, 10*time.Millisecond), share, later)
	s.Work.Together = true
	return s
}
