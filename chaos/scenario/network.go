package scenario

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// ofNetwork cut and slow the ways between nodes and to Redis.
var ofNetwork = []Scenario{
	{
		Name: "cut-redis", Cases: []string{"C020"},
		Says:     "a node loses Redis alone, for longer than the lease: its handlers are told, its jobs run elsewhere, it comes back by itself",
		Settings: long(short(4, 1_200, 45*time.Second), 50*time.Millisecond, 2*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(2*time.Second, 4*time.Second) {
				p.whole(history.Fault{Kind: "cut-redis", Aim: "holder", For: p.between(8*time.Second, 11*time.Second)})
			}
			p.need("partitions", most(p.count("cut-redis")))
			p.need("reclaimed jobs", 1)
		},
	},
	{
		Name: "one-way", Says: "the way between a node and Redis is half open, deaf or dumb: commands without replies, or none at all",
		Settings: long(short(4, 1_500, 50*time.Second), 20*time.Millisecond, time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			kinds := []string{"half-open", "deaf", "dumb"}
			for i := 0; p.next(2*time.Second, 4*time.Second); i++ {
				p.whole(history.Fault{Kind: kinds[i%3], Aim: "holder", For: p.between(3*time.Second, 9*time.Second)})
			}
			p.need("partitions", most(p.count(kinds...)))
		},
	},
	{
		Name: "cut-gossip", Cases: []string{"C137", "C138"},
		Says:     "a node loses gossip alone, while all reach Redis: one sweeper, no job moves, and the herd finds together again",
		Settings: herd(4, 4_000, 45*time.Second),
		Bars:     []history.Bar{nothingLost, none("condemned_unexplained", "it beats in Redis"), none("reclaimed", "it beats in Redis")},
		plan: func(p *planner) {
			kinds := []string{"cut-gossip", "gossip-one-way"}
			for i := 0; p.next(2*time.Second, 4*time.Second); i++ {
				p.whole(history.Fault{Kind: kinds[i%2], Aim: "random", For: p.between(6*time.Second, 10*time.Second)})
			}
			p.need("partitions", most(p.count(kinds...)))
		},
	},
	{
		Name: "gossip-lossy", Cases: []string{"C143"},
		Says:     "gossip loses, delays and doubles what it carries: nobody is declared dead for it",
		Settings: herd(4, 4_000, 45*time.Second),
		Bars:     []history.Bar{nothingLost, none("condemned_unexplained", "it beats in Redis"), none("reclaimed", "it beats in Redis")},
		plan: func(p *planner) {
			kinds := []string{"gossip-loss", "gossip-delay", "gossip-duplicate"}
			for i := 0; p.next(2*time.Second, 4*time.Second); i++ {
				p.whole(history.Fault{Kind: kinds[i%3], Aim: "all", For: p.between(6*time.Second, 9*time.Second), Delay: 200 * time.Millisecond})
			}
		},
	},
	{
		Name: "cut", Says: "a node loses Redis and gossip, as a machine whose cable is pulled: its jobs run elsewhere",
		Settings: long(short(4, 1_200, 45*time.Second), 50*time.Millisecond, 2*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(2*time.Second, 4*time.Second) {
				p.whole(history.Fault{Kind: "cut", Aim: "holder", For: p.between(8*time.Second, 11*time.Second)})
			}
			p.need("partitions", most(p.count("cut")))
			p.need("reclaimed jobs", 1)
		},
	},
	{
		Name: "lost-replies", Cases: []string{"C002", "C029", "C030", "C032"},
		Says:     "commands are executed and their replies lost, or lost themselves, aimed at each script: nothing is there twice, nothing is lost, no settlement counts twice",
		Settings: herd(3, 4_000, 40*time.Second), Bars: []history.Bar{nothingLost, none("reclaimed", "all nodes live"), none("stale_refused", "all nodes live")},
		plan: func(p *planner) {
			kinds := []string{"drop-reply", "drop-reply", "lose"}
			for i := 0; p.next(300*time.Millisecond, 1200*time.Millisecond); i++ {
				p.strike(aimed(kinds[i%3], i, 0))
			}
			p.need("lost replies", most(p.count("drop-reply")))
		},
	},
	{
		Name: "late-copies", Cases: []string{"C030"},
		Says:     "a copy of a command arrives seconds later, or the command itself does: Redis refuses it by its turn",
		Settings: herd(3, 4_000, 40*time.Second), Bars: []history.Bar{nothingLost, none("reclaimed", "all nodes live"), none("stale_refused", "all nodes live")},
		plan: func(p *planner) {
			kinds := []string{"late-copy", "late", "hold"}
			for i := 0; p.next(300*time.Millisecond, 1200*time.Millisecond); i++ {
				p.strike(aimed(kinds[i%3], i, p.between(50*time.Millisecond, 3*time.Second)))
			}
			p.need("late copies", most(p.count("late-copy", "late")))
		},
	},
	{
		Name: "slow", Cases: []string{"C015", "C016"},
		Says:     "the way to Redis takes 50 to 200 ms each way, for nodes and sweeper: no living node is declared dead, no job is taken from it",
		Settings: long(herd(4, 4_000, 45*time.Second), time.Millisecond, 5*time.Millisecond),
		Bars:     []history.Bar{nothingLost, none("condemned_unexplained", ""), none("reclaimed", "all nodes live"), none("duplicates", "")},
		plan: func(p *planner) {
			aims := []string{"sweeper", "all", "holder"}
			for i := 0; p.next(time.Second, 3*time.Second); i++ {
				p.whole(history.Fault{Kind: "slow", Aim: aims[i%3], For: p.between(6*time.Second, 9*time.Second), Delay: p.between(50*time.Millisecond, 200*time.Millisecond)})
			}
		},
	},
}

// aimed is a fault of single commands of one script, in turn of those that run
// often; seven is no multiple of the kinds, so that each meets each.
func aimed(kind string, i int, delay time.Duration) history.Fault {
	scripts := []struct{ name, aim string }{
		{"exchange", "holder"}, {"enqueue", "producer"}, {"exchange", "random"}, {"beat", "random"},
		{"exchange", "holder"}, {"promote", "sweeper"}, {"enqueue", "producer"},
	}
	s := scripts[i%len(scripts)]
	return history.Fault{Kind: kind, Aim: s.aim, Script: s.name, Nth: 1, Times: 1, Delay: delay}
}
