package scenario

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// ofRedis strike Redis itself.
var ofRedis = []Scenario{
	{
		Name: "redis-kill", Says: "kill -9 of a Redis that syncs each write (appendfsync always), and its restart: nothing is lost",
		Settings: herd(4, 5_000, 35*time.Second), Server: Server{Fsync: "always"},
		Bars: []history.Bar{nothingLost, none("condemned_unexplained", "only Redis was away")},
		plan: killRedis,
	},
	{
		Name: "redis-kill-everysec", Says: "kill -9 of a Redis that syncs once a second: what is lost is counted and stays within its bound",
		Settings: herd(4, 5_000, 35*time.Second), Server: Server{Fsync: "everysec"},
		Bars: []history.Bar{none("condemned_unexplained", "only Redis was away")},
		Loss: history.Loss{Window: 2 * time.Second, Why: "appendfsync everysec"},
		plan: killRedis,
	},
	{
		Name: "redis-gone", Cases: []string{"C149"},
		Says:     "Redis is gone for 30 s: nobody is declared dead, no attempt is spent, one sweeper acts again",
		Settings: long(herd(4, 2_000, 45*time.Second), 20*time.Millisecond, time.Second),
		Bars:     []history.Bar{nothingLost, none("condemned_unexplained", "only Redis was away"), none("reclaimed", "only Redis was away"), none("stale_refused", "only Redis was away")},
		plan: func(p *planner) {
			p.next(4*time.Second, 6*time.Second)
			p.whole(history.Fault{Kind: "redis-kill", Aim: "redis", For: 30 * time.Second})
			p.need("redis outages", p.count("redis-kill"))
		},
	},
	{
		Name: "redis-pause", Says: "Redis stands still for 1 to 10 s, again and again: nobody is declared dead, no attempt is spent",
		Settings: herd(4, 3_000, 45*time.Second),
		Bars:     []history.Bar{nothingLost, none("condemned_unexplained", "only Redis was away"), none("reclaimed", "only Redis was away"), none("stale_refused", "only Redis was away")},
		plan: func(p *planner) {
			for p.next(2*time.Second, 5*time.Second) {
				p.whole(history.Fault{Kind: "redis-pause", Aim: "redis", For: p.between(time.Second, 10*time.Second)})
			}
			p.need("redis outages", most(p.count("redis-pause")))
		},
	},
	{
		Name: "redis-full", Cases: []string{"C123"},
		Says:     "Redis is out of memory for a while: enqueues are refused, jobs go on and settle, nothing is lost",
		Settings: herd(4, 4_000, 35*time.Second), Bars: []history.Bar{nothingLost},
		plan: func(p *planner) {
			for p.next(3*time.Second, 5*time.Second) {
				p.whole(history.Fault{Kind: "redis-full", Aim: "redis", For: p.between(4*time.Second, 8*time.Second)})
			}
			p.need("full", p.count("redis-full"))
		},
	},
	{
		Name: "redis-disk", Cases: []string{"C125"},
		Says:     "the disk of Redis is full, so that it refuses all writes: the herd waits and goes on by itself",
		Settings: herd(4, 3_000, 35*time.Second), Bars: []history.Bar{nothingLost, none("condemned_unexplained", "only Redis was away")},
		plan: func(p *planner) {
			for p.next(3*time.Second, 5*time.Second) {
				p.whole(history.Fault{Kind: "redis-disk", Aim: "redis", For: p.between(3*time.Second, 7*time.Second)})
			}
			p.need("redis outages", most(p.count("redis-disk")))
		},
	},
	{
		Name: "redis-busy", Cases: []string{"C131"},
		Says:     "somebody's long script keeps Redis busy: no job fails for it, and all goes on after it",
		Settings: herd(4, 3_000, 40*time.Second),
		Bars:     []history.Bar{nothingLost, none("condemned_unexplained", "only Redis was away"), none("reclaimed", "only Redis was away"), none("stale_refused", "only Redis was away")},
		plan: func(p *planner) {
			for p.next(3*time.Second, 5*time.Second) {
				p.whole(history.Fault{Kind: "redis-busy", Aim: "redis", For: p.between(2*time.Second, 10*time.Second)})
			}
			p.need("redis outages", most(p.count("redis-busy")))
		},
	},
	{
		Name: "script-flush", Cases: []string{"C119"},
		Says:     "the script cache is emptied again and again under load: nobody notices",
		Settings: herd(3, 4_000, 25*time.Second),
		Bars:     []history.Bar{nothingLost, none("duplicates", ""), none("condemned_unexplained", "")},
		plan: func(p *planner) {
			for p.next(50*time.Millisecond, 350*time.Millisecond) {
				p.strike(history.Fault{Kind: "script-flush", Aim: "redis"})
			}
		},
	},
	{
		Name: "rollback", Cases: []string{"C122"},
		Says:     "Redis comes back with the data of some seconds ago: what it forgot is lost, all else ends, and the herd heals by itself",
		Settings: herd(3, 3_000, 40*time.Second),
		Loss:     history.Loss{Window: 8 * time.Second, Why: "Redis was set back by so much"},
		plan: func(p *planner) {
			for p.next(4*time.Second, 6*time.Second) {
				p.whole(history.Fault{Kind: "rollback", Aim: "redis", For: p.between(3*time.Second, 6*time.Second)})
			}
			p.need("rollbacks", p.count("rollback"))
		},
	},
	{
		Name: "flush-all", Cases: []string{"C133"},
		Says:     "FLUSHALL under running nodes: what was there is lost, late settlements are refused, new jobs run",
		Settings: herd(3, 3_000, 35*time.Second),
		Loss:     history.Loss{Window: time.Hour, Why: "somebody emptied Redis"},
		plan: func(p *planner) {
			p.next(8*time.Second, 12*time.Second)
			p.strike(history.Fault{Kind: "flush-all", Aim: "redis"})
			p.need("rollbacks", p.count("flush-all"))
		},
	},
	{
		Name: "failover", Cases: []string{"C122"},
		Says:     "the master dies and Sentinel makes a replica the new one: what the replica did not have is counted and stays within its bound",
		Settings: herd(3, 4_000, 45*time.Second), Server: Server{Fsync: "everysec", Sentinel: true},
		Loss: history.Loss{Window: 2 * time.Second, Why: "replication is asynchronous"},
		plan: func(p *planner) {
			for p.next(6*time.Second, 10*time.Second) {
				p.strike(history.Fault{Kind: "failover", Aim: "redis"})
				p.cursor += 15 * time.Second
			}
			p.need("failovers", most(p.count("failover")))
		},
	},
}

// killRedis plans some deaths of Redis, each for a second or so.
func killRedis(p *planner) {
	for p.next(5*time.Second, 8*time.Second) {
		p.whole(history.Fault{Kind: "redis-kill", Aim: "redis", For: p.between(500*time.Millisecond, 3*time.Second)})
	}
	p.need("redis restarts", p.count("redis-kill"))
}
