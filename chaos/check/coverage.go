package check

import (
	"github.com/kelpiehq/kelpie/chaos/history"
)

// cover counts what the run contained, and takes the measures that are counts.
func (j *judge) cover() {
	have := j.ofFaults()
	r := j.log
	have[Refused], have[Reclaimed] = r.n[refused], len(r.reclaims)
	have[Promotions], have[Retries], have[DeadJobs] = r.n[history.Promote], r.n["settle R"], r.n["dead"]+r.n[history.SpentOut]
	have[Sweepers], have[Twins] = len(r.raised), r.n[history.Exists]
	for _, n := range r.backs {
		have[Rollbacks] = max(have[Rollbacks], n)
	}
	for _, c := range j.calls.all {
		if c.phase == history.Unknown {
			have[Outcomes]++
		}
		if c.phase == history.OK && c.Verb == "enqueue" {
			have[Jobs]++
		}
	}
	for _, name := range coverages {
		j.v.Coverage = append(j.v.Coverage, Coverage{Name: name, Have: have[name], Need: j.h.Run.Needs[name]})
	}
	j.v.Measures[StaleRefused] = float64(r.n[refused])
	j.v.Measures[SettledAgain] = float64(r.n[repeated])
	j.v.Measures[MeasureReclaimed] = float64(len(r.reclaims))
	if seconds := float64(r.to-r.first) / 1e6; r.first > 0 && seconds > 0 {
		j.v.Measures[Throughput] = float64(r.ends) / seconds
	}
}

// ofFaults counts what the faults did.
func (j *judge) ofFaults() map[string]int {
	have, stopped := map[string]int{Struck: len(j.faults.blows)}, map[string]bool{}
	for _, b := range j.faults.blows {
		for _, h := range b.hits {
			held := len(h.Held) > 0
			switch {
			case h.Signal == "KILL" && held:
				have[KillsMidJob]++
			case h.Signal == "TERM" && held:
				have[StopsMidJob]++
			case h.Signal == "STOP":
				stopped[h.Session] = true
			case b.is("cut-gossip", "gossip-one-way") || b.is(onWays...):
				have[Partitions]++
			}
			if h.Signal == "KILL" && h.Sweeper {
				have[SweeperKills]++
			}
		}
		switch {
		case b.is("drop-reply"):
			have[LostReplies] += b.count
		case b.is("deaf"):
			have[LostReplies] += len(b.hits)
		case b.is("late-copy", "late", "last-words"):
			have[LateCopies] += b.count
		case b.is("redis-full") && b.heal != never:
			have[FullRedis] += j.settledWithin(b.hits[0].T, b.heal)
		case b.is("failover"):
			have[Failovers]++
		}
		if b.is("redis-kill", "redis-loading", "rollback") {
			have[RedisRestarts]++
		}
		if b.is("redis-kill", "redis-loading", "redis-pause", "redis-busy", "redis-disk", "failover") {
			have[RedisOutages]++
		}
	}
	for _, c := range j.log.condemned {
		if stopped[c.session] {
			have[StopsBeyond]++
		}
	}
	return have
}
