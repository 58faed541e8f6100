package scenario

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// ofNodes strike processes of nodes.
var ofNodes = []Scenario{
	{
		Name: "kills", Cases: []string{"C002", "C035"},
		Says:     "kill -9 of a node that holds jobs, every 2 to 5 s until 15 kills have hit running jobs: nothing is lost, and its jobs soon run elsewhere",
		Settings: herd(5, 20_000, 0), Bars: append([]history.Bar{nothingLost}, recovery...),
		plan: func(p *planner) {
			for p.next(2*time.Second, 5*time.Second) && len(p.faults) < 16 {
				p.strike(history.Fault{Kind: "kill", Aim: "holder", For: p.between(0, 4*time.Second)})
			}
			p.need("kills mid-job", max(1, p.count("kill")-1))
		},
	},
	{
		Name: "sweeper-kills", Cases: []string{"C001", "C154"},
		Says:     "kill -9 of the sweeper while it promotes: no delayed job is lost or promoted twice, and the next sweeper soon acts",
		Settings: delayed(herd(3, 6_000, 40*time.Second), 700, 15*time.Second), Bars: append([]history.Bar{nothingLost}, recovery...),
		plan: func(p *planner) {
			for p.next(3*time.Second, 5*time.Second) {
				p.whole(history.Fault{Kind: "kill", Aim: "sweeper", For: p.between(0, 2*time.Second)})
			}
			p.need("sweeper kills", most(p.count("kill")))
			p.need("promotions", 100)
		},
	},
	{
		Name: "stop-short", Says: "SIGSTOP of a node for less than the lease: no job moves, no attempt is spent",
		Settings: long(herd(4, 2_500, 40*time.Second), 20*time.Millisecond, 600*time.Millisecond),
		Bars:     []history.Bar{nothingLost, none("condemned_unexplained", ""), none("reclaimed", "the node had its lease"), none("duplicates", ""), none("stale_refused", "")},
		plan: func(p *planner) {
			for p.next(time.Second, 3*time.Second) {
				p.whole(history.Fault{Kind: "stop", Aim: "holder", For: p.between(3*time.Second, 7*time.Second)})
			}
		},
	},
	{
		Name: "stop-long", Cases: []string{"C013"},
		Says:     "SIGSTOP of a node for longer than the lease: its jobs run elsewhere, each of its late settlements is refused and counted",
		Settings: long(short(4, 1_200, 45*time.Second), 50*time.Millisecond, 2*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(time.Second, 3*time.Second) {
				p.whole(history.Fault{Kind: "stop", Aim: "holder", For: p.between(7*time.Second, 10*time.Second)})
			}
			p.need("stops beyond the lease", most(p.count("stop")))
			p.need("refused settlements", 1)
		},
	},
	{
		Name: "sweeper-stop", Cases: []string{"C148"},
		Says:     "SIGSTOP of the sweeper for much longer than its lock: another one takes over, and what the old one does when it wakes is refused",
		Settings: delayed(short(4, 2_500, 45*time.Second), 600, 10*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(time.Second, 3*time.Second) {
				p.whole(history.Fault{Kind: "stop", Aim: "sweeper", For: p.between(4*time.Second, 10*time.Second)})
			}
			p.need("sweepers", 2)
		},
	},
	{
		Name: "rolling", Says: "a rolling restart of all nodes under load: nothing is lost, no attempt is spent, promotion does not pause",
		Settings: delayed(herd(5, 8_000, 40*time.Second), 400, 5*time.Second),
		Bars:     []history.Bar{nothingLost, none("attempts_spent_graceful", ""), {Measure: "pause_promotion_ms", Most: 200, Why: "the sweeper hands over"}},
		plan: func(p *planner) {
			for p.next(3*time.Second, 5*time.Second) {
				p.strike(history.Fault{Kind: "rolling", Aim: "all"})
				p.cursor += 20 * time.Second
			}
			p.need("graceful stops mid-job", 2)
		},
	},
	{
		Name: "drain", Cases: []string{"C021"},
		Says:     "SIGTERM of nodes whose handlers are longer than the drain: what is left is handed back without an attempt",
		Settings: tight(long(herd(4, 400, 30*time.Second), time.Second, 4*time.Second), time.Second),
		Bars:     []history.Bar{nothingLost, none("attempts_spent_graceful", "")},
		plan: func(p *planner) {
			for p.next(2*time.Second, 4*time.Second) {
				p.whole(history.Fault{Kind: "term", Aim: "holder", For: 2 * time.Second})
			}
			p.need("graceful stops mid-job", most(p.count("term")))
		},
	},
	{
		Name: "term-kill", Cases: []string{"C022"},
		Says:     "SIGTERM, then kill -9 in the middle of the drain: nothing stays behind in a half-done stop",
		Settings: long(herd(4, 1_000, 40*time.Second), 50*time.Millisecond, 2*time.Second), Bars: append([]history.Bar{nothingLost}, recovery...),
		plan: func(p *planner) {
			for p.next(3*time.Second, 5*time.Second) {
				p.whole(history.Fault{Kind: "term-kill", Aim: "holder", For: time.Second, Delay: p.between(0, 1500*time.Millisecond)})
			}
			p.need("reclaimed jobs", 1)
		},
	},
	{
		Name: "storm", Says: "a node is restarted again and again, as a supervisor does with one that crashes: nothing is lost",
		Settings: herd(4, 5_000, 40*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(2*time.Second, 4*time.Second) {
				p.whole(history.Fault{Kind: "storm", Aim: "random", For: p.between(4*time.Second, 6*time.Second), Times: 5})
			}
			p.need("reclaimed jobs", 1)
		},
	},
	{
		Name: "restart", Cases: []string{"C151"},
		Says:     "one node alone is killed and started again at once, under its old name: it sweeps again each time",
		Settings: delayed(herd(1, 1_500, 40*time.Second), 500, 5*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(3*time.Second, 6*time.Second) {
				p.strike(history.Fault{Kind: "kill", Aim: "sweeper"})
			}
			p.need("sweeper kills", most(p.count("kill")))
			p.need("promotions", 100)
		},
	},
	{
		Name: "majority", Says: "all nodes but one are killed at once: the last one takes everything over",
		Settings: wide(herd(4, 4_000, 40*time.Second), 40), Bars: append([]history.Bar{nothingLost}, recovery...),
		plan: func(p *planner) {
			for p.next(3*time.Second, 6*time.Second) {
				p.whole(history.Fault{Kind: "kill", Aim: "others", For: p.between(6*time.Second, 8*time.Second)})
			}
			p.need("kills mid-job", most(p.count("kill")))
		},
	},
	{
		Name: "clocks", Cases: []string{"C052"},
		Says:     "the wall clocks of nodes are two minutes ahead or behind, and nodes are killed: nothing depends on them",
		Settings: herd(4, 5_000, 30*time.Second), Bars: append([]history.Bar{nothingLost}, recovery...),
		Skew: map[int]time.Duration{0: 2 * time.Minute, 1: -2 * time.Minute},
		plan: func(p *planner) {
			for p.next(3*time.Second, 5*time.Second) {
				p.whole(history.Fault{Kind: "kill", Aim: "holder", For: 2 * time.Second})
			}
			p.need("kills mid-job", most(p.count("kill")))
			p.need("promotions", 50)
		},
	},
}

// wide gives the nodes more workers, so that few nodes do for all.
func wide(s history.Settings, workers int) history.Settings {
	s.Workers = workers
	return s
}

// tight shortens the drain.
func tight(s history.Settings, drain time.Duration) history.Settings {
	s.Drain = drain
	return s
}
