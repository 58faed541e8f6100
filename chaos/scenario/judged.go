package scenario

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// ofJudge are short plans made to show that one protection is missing: package
// plant takes it away. Each brings about the moment that its protections are made
// for, and does not wait for it. They are scenarios like the others, and a sound
// build passes them.
var ofJudge = []Scenario{
	{
		Name: "last-words", Says: "a node and the sweeper die while a command of theirs is under way, which arrives when others have their jobs and their office: it changes nothing",
		Settings: delayed(busy(4, 9*time.Second), 300, 3*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			p.next(1200*time.Millisecond, 1700*time.Millisecond)
			p.strike(history.Fault{Kind: "last-words", Aim: "sweeper", Script: "promote", Delay: 6 * time.Second, For: 7 * time.Second})
			p.cursor += 300 * time.Millisecond
			p.strike(history.Fault{Kind: "last-words", Aim: "holder", Script: "exchange", Delay: 6 * time.Second, For: 7 * time.Second})
			p.need("late copies", 2)
			p.need("reclaimed jobs", 1)
			p.need("sweepers", 2)
		},
	},
	{
		Name: "zombies", Says: "nodes are stopped beyond their lease, with long handlers: what they settle when they wake is refused",
		Settings: long(brief(4, 240, 13*time.Second), 500*time.Millisecond, 3*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(1500*time.Millisecond, 2*time.Second) {
				p.whole(history.Fault{Kind: "stop", Aim: "holder", For: p.between(4800*time.Millisecond, 5200*time.Millisecond)})
			}
			p.need("stops beyond the lease", 1)
			p.need("refused settlements", 1)
		},
	},
	{
		Name: "echoes", Says: "replies to exchanges and enqueues are lost, and copies of exchanges arrive late, one after the other: each counts once",
		Settings: busy(3, 9*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for i := 0; p.next(200*time.Millisecond, 400*time.Millisecond); i++ {
				f := history.Fault{Kind: "drop-reply", Aim: "holder", Script: "exchange", Nth: 1, Times: 1}
				switch i % 3 {
				case 1:
					f.Aim, f.Script = "producer", "enqueue"
				case 2:
					f.Kind, f.Delay = "late-copy", p.between(50*time.Millisecond, 500*time.Millisecond)
				}
				p.strike(f)
			}
			p.need("lost replies", 3)
			p.need("late copies", 2)
		},
	},
	{
		Name: "retries", Says: "most jobs fail some times, and some for ever: each ends after as many attempts as it may have; of two with one id in a batch one is refused",
		Settings: failing(brief(2, 800, 8*time.Second)), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) { p.need("retries", 50); p.need("dead jobs", 5); p.need("refused twins", 1) },
	},
	{
		Name: "hand-over", Says: "nodes are asked to end while they run jobs that outlast their drain: no attempt is spent",
		Settings: tight(long(brief(3, 200, 8*time.Second), 500*time.Millisecond, 2*time.Second), 300*time.Millisecond),
		Bars:     []history.Bar{nothingLost, none("attempts_spent_graceful", "")},
		plan: func(p *planner) {
			for p.next(time.Second, 1500*time.Millisecond) {
				p.whole(history.Fault{Kind: "term", Aim: "holder", For: 500 * time.Millisecond})
			}
			p.need("graceful stops mid-job", 1)
		},
	},
	{
		Name: "outage", Says: "Redis is killed and comes back after more than a lease: nobody is declared dead",
		Settings: brief(4, 600, 11*time.Second), Server: Server{Fsync: "always"},
		Bars: []history.Bar{nothingLost, none("condemned_unexplained", "only Redis was away"), none("reclaimed", "only Redis was away")},
		plan: func(p *planner) {
			p.next(2*time.Second, 3*time.Second)
			p.whole(history.Fault{Kind: "redis-kill", Aim: "redis", For: 6 * time.Second})
			p.need("redis outages", 1)
		},
	},
	{
		Name: "full", Says: "Redis is out of memory for some seconds while jobs run, and some fail: they settle all the same",
		Settings: failing(long(brief(3, 180, 11*time.Second), 100*time.Millisecond, time.Second)), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			p.next(2*time.Second, 3*time.Second)
			p.whole(history.Fault{Kind: "redis-full", Aim: "redis", For: 6 * time.Second})
			p.need("full", 1)
		},
	},
	{
		Name: "newcomers", Says: "sessions and sweepers come and go, and a sweeper that looks for holders of jobs is slow at it: no new session is taken for dead",
		Settings: brief(4, 1_200, 12*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			p.cursor = 500 * time.Millisecond
			p.strike(history.Fault{Kind: "hold", Aim: "all", Script: "hscan", Nth: 1, Times: 10_000, Delay: 400 * time.Millisecond, For: p.end - time.Second})
			for i := 0; p.next(400*time.Millisecond, 800*time.Millisecond); i++ {
				aim := "holder"
				if i%4 == 0 {
					aim = "sweeper"
				}
				p.strike(history.Fault{Kind: "term", Aim: aim})
			}
			p.need("sweepers", 2)
		},
	},
	{
		Name: "set-back", Says: "Redis comes back with the data of a second ago, and with fences that were given out before: a token is fence and session",
		Settings: long(together(brief(3, 120, 11*time.Second), 300, 3*time.Second), 2*time.Second, 3*time.Second), FencesAhead: true,
		Loss: history.Loss{Window: 5 * time.Second, Why: "Redis was set back by so much"},
		plan: func(p *planner) {
			// The jobs that are due together are claimed between the copy and the
			// return to it, and again after it: in the same order, with the same
			// fences, by whoever comes first.
			p.cursor = 2600 * time.Millisecond
			p.whole(history.Fault{Kind: "rollback", Aim: "redis", For: time.Second})
			for p.next(2*time.Second, 3*time.Second) {
				p.whole(history.Fault{Kind: "rollback", Aim: "redis", For: 1500 * time.Millisecond})
			}
			p.need("rollbacks", 1)
		},
	},
	{
		Name: "forgotten", Says: "Redis comes back without settlements that it had acknowledged, to nodes whose queues are idle: what a node holds and does not run is given back at once",
		Settings: idle(long(brief(3, 200, 14*time.Second), time.Second, 1800*time.Millisecond)),
		Loss:     history.Loss{Window: 5 * time.Second, Why: "Redis was set back by so much"},
		plan: func(p *planner) {
			for p.next(3*time.Second, 4*time.Second) {
				p.whole(history.Fault{Kind: "rollback", Aim: "redis", For: 2 * time.Second})
			}
			p.need("rollbacks", 1)
		},
	},
	{
		Name: "due-together", Says: "many jobs are due at one moment, and all nodes want them",
		Settings: together(brief(3, 3_000, 6*time.Second), 800, 3*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) { p.need("promotions", 1_000) },
	},
	{
		Name: "ahead", Says: "the wall clocks of all nodes are two minutes ahead of Redis: what is delayed waits for Redis's clock",
		Settings: delayed(brief(2, 600, 6*time.Second), 500, 3*time.Second), Bars: []history.Bar{nothingLost},
		Skew: map[int]time.Duration{0: 2 * time.Minute, 1: 2 * time.Minute},
		plan: func(p *planner) { p.need("promotions", 100) },
	},
	{
		Name: "deaf", Says: "replies from Redis do not reach a node for some seconds, and another one is killed: what they took out of a queue is in its place",
		Settings: busy(3, 10*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			p.next(time.Second, 2*time.Second)
			p.whole(history.Fault{Kind: "deaf", Aim: "holder", For: p.between(time.Second, 2*time.Second)})
			p.next(500*time.Millisecond, time.Second)
			p.whole(history.Fault{Kind: "kill", Aim: "holder", For: time.Second})
			p.need("partitions", 1)
			p.need("kills mid-job", 1)
		},
	},
}

// brief is a herd with a lease of 4 s, the shortest that is sensible, whose run
// is over within a minute whatever is wrong with the build.
func brief(nodes, jobs int, d time.Duration) history.Settings {
	s := herd(nodes, jobs, d)
	s.Lease, s.Drain, s.Settle = 4*time.Second, 2*time.Second, 15*time.Second
	return s
}

// busy is a brief herd with more work than it can do at a time, so that jobs wait
// whenever a node asks for some.
func busy(nodes int, d time.Duration) history.Settings {
	const workers, shortest, longest = 4, 50 * time.Millisecond, 250 * time.Millisecond
	each := (shortest + longest) / 2
	s := long(brief(nodes, int(time.Duration(nodes*workers)*d/each*6/5), d), shortest, longest)
	s.Workers = workers
	return s
}

// failing makes most jobs fail, and some come twice in one call.
func failing(s history.Settings) history.Settings {
	s.Work.Failing, s.Work.Doomed, s.Work.Panicking, s.Work.Twins = 600, 100, 50, 150
	return s
}

// idle spreads few jobs over many queues, so that most of them rest at any time.
func idle(s history.Settings) history.Settings {
	s.Queues = []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	s.Work.Snoozing, s.Settle = 0, 12*time.Second
	return s
}
