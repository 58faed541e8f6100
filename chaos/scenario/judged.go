package scenario

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// ofJudge are short plans made to show that one protection is missing: package
// plant takes it away. They are scenarios like the others, and a sound build
// passes them.
var ofJudge = []Scenario{
	{
		Name: "last-words", Says: "a node dies while its exchange is under way, which arrives when its jobs have been taken from it: a dead session claims nothing",
		Settings: brief(3, 800, 24*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(time.Second, 2*time.Second) {
				p.whole(history.Fault{Kind: "last-words", Aim: "holder", Script: "exchange", Delay: 5 * time.Second, For: 6 * time.Second})
			}
			p.need("reclaimed jobs", 1)
		},
	},
	{
		Name: "late-sweeps", Says: "a sweeper dies while its sweep is under way, which arrives when another one is at work: it is refused by its epoch",
		Settings: delayed(brief(3, 1_500, 24*time.Second), 900, 4*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(time.Second, 2*time.Second) {
				p.whole(history.Fault{Kind: "last-words", Aim: "sweeper", Script: "promote", Delay: 5 * time.Second, For: 6 * time.Second})
			}
			p.need("sweepers", 2)
		},
	},
	{
		Name: "zombies", Says: "nodes are stopped beyond their lease again and again, with long handlers: what they settle when they wake is refused",
		Settings: long(brief(4, 400, 24*time.Second), 500*time.Millisecond, 3*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(500*time.Millisecond, time.Second) {
				p.whole(history.Fault{Kind: "stop", Aim: "holder", For: p.between(4500*time.Millisecond, 5500*time.Millisecond)})
			}
			p.need("stops beyond the lease", 1)
			p.need("refused settlements", 1)
		},
	},
	{
		Name: "copies", Says: "copies of exchanges arrive late, one after the other",
		Settings: brief(3, 1_500, 15*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(200*time.Millisecond, 500*time.Millisecond) {
				p.strike(history.Fault{Kind: "late-copy", Aim: "holder", Script: "exchange", Nth: 1, Times: 1, Delay: p.between(50*time.Millisecond, time.Second)})
			}
			p.need("late copies", 3)
		},
	},
	{
		Name: "silence", Says: "replies to exchanges and enqueues are lost, one after the other",
		Settings: brief(3, 1_500, 15*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for i := 0; p.next(200*time.Millisecond, 500*time.Millisecond); i++ {
				p.strike(aimed("drop-reply", i%3, 0))
			}
			p.need("lost replies", 3)
		},
	},
	{
		Name: "twins", Says: "batches with the same id twice: one of the two is refused",
		Settings: twins(brief(2, 1_500, 8*time.Second)), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) { p.need("refused twins", 1) },
	},
	{
		Name: "retries", Says: "most jobs fail some times, and some for ever: each ends, after as many attempts as it may have",
		Settings: failing(brief(2, 800, 8*time.Second)), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) { p.need("retries", 50); p.need("dead jobs", 5) },
	},
	{
		Name: "hand-over", Says: "nodes are asked to end while they run jobs that outlast their drain: no attempt is spent",
		Settings: tight(long(brief(3, 300, 15*time.Second), 500*time.Millisecond, 2*time.Second), 300*time.Millisecond),
		Bars:     []history.Bar{nothingLost, none("attempts_spent_graceful", "")},
		plan: func(p *planner) {
			for p.next(time.Second, 2*time.Second) {
				p.whole(history.Fault{Kind: "term", Aim: "holder", For: time.Second})
			}
			p.need("graceful stops mid-job", 1)
		},
	},
	{
		Name: "outage", Says: "Redis is killed and comes back after twice the lease: nobody is declared dead",
		Settings: brief(4, 800, 20*time.Second), Server: Server{Fsync: "always"},
		Bars: []history.Bar{nothingLost, none("condemned_unexplained", "only Redis was away"), none("reclaimed", "only Redis was away")},
		plan: func(p *planner) {
			p.next(2*time.Second, 4*time.Second)
			p.whole(history.Fault{Kind: "redis-kill", Aim: "redis", For: 7 * time.Second})
			p.need("redis outages", 1)
		},
	},
	{
		Name: "full", Says: "Redis is out of memory for some seconds while jobs run: they settle all the same",
		Settings: brief(3, 1_500, 15*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			p.next(3*time.Second, 4*time.Second)
			p.whole(history.Fault{Kind: "redis-full", Aim: "redis", For: 6 * time.Second})
			p.need("full", 1)
		},
	},
	{
		Name: "newcomers", Says: "new sessions appear all the time, while the sweeper audits: none is taken for dead",
		Settings: long(brief(4, 1_200, 26*time.Second), 300*time.Millisecond, 800*time.Millisecond), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(300*time.Millisecond, 900*time.Millisecond) {
				p.strike(history.Fault{Kind: "term", Aim: "holder"})
			}
			p.need("graceful stops mid-job", 3)
		},
	},
	{
		Name: "set-back", Says: "Redis comes back with the data of a second ago, and with fences that were given out before: a token is fence and session",
		Settings: long(brief(3, 300, 20*time.Second), time.Second, 3*time.Second), FencesAhead: true,
		Loss: history.Loss{Window: 5 * time.Second, Why: "Redis was set back by so much"},
		plan: func(p *planner) {
			for p.next(3*time.Second, 4*time.Second) {
				p.whole(history.Fault{Kind: "rollback", Aim: "redis", For: 1500 * time.Millisecond})
			}
			p.need("rollbacks", 1)
		},
	},
	{
		Name: "due-together", Says: "many jobs are due at one moment",
		Settings: together(brief(3, 3_000, 10*time.Second), 800, 4*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) { p.need("promotions", 1_000) },
	},
	{
		Name: "deaf", Says: "replies from Redis do not reach a node for some seconds, again and again",
		Settings: brief(3, 1_500, 18*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(500*time.Millisecond, time.Second) {
				p.whole(history.Fault{Kind: "deaf", Aim: "holder", For: p.between(time.Second, 2*time.Second)})
			}
			p.need("partitions", 1)
		},
	},
}

// brief is a herd with a lease of 4 s, the shortest that is sensible, whose run
// is over within a minute whatever is wrong with the build.
func brief(nodes, jobs int, d time.Duration) history.Settings {
	s := herd(nodes, jobs, d)
	s.Lease, s.Drain, s.Settle = 4*time.Second, 2*time.Second, 20*time.Second
	return s
}

// twins makes a share of the jobs come twice in one call.
func twins(s history.Settings) history.Settings {
	s.Work.Twins = 150
	return s
}

// failing makes most jobs fail.
func failing(s history.Settings) history.Settings {
	s.Work.Failing, s.Work.Doomed, s.Work.Panicking = 600, 100, 50
	return s
}
