package report

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

const second = int64(1e6)

// nasty is a name that would break a page which does not escape.
const nasty = `<script>alert("x")</script>`

// aRun returns the history of a run of so many seconds with a kill every five of
// them, and a verdict on it.
func aRun(seconds, jobs int) (*history.History, *check.Verdict) {
	draw := rand.New(rand.NewPCG(1, 2))
	h := &history.History{Clock: history.NewClock([]history.Tick{{T: 0, After: 10, US: 5}})}
	h.Run = history.Run{
		Seed: 42, Scenario: "kills", Cases: []string{"K01", "K02"}, Command: "kelpie chaos run --scenario kills --seed 42", Commit: "abc1234", Version: "v0.3.0",
		Kelpie: "/usr/local/bin/kelpie", Go: "go1.26.0", System: "Linux 6.1, amd64, 2 processors", Redis: "redis-server 7.0.15", Durable: "appendfsync always",
		Started: time.Unix(1_790_000_000, 0), Ended: time.Unix(1_790_000_000+int64(seconds)+8, 0), Begin: 10 * second,
		Settings: history.Settings{
			Nodes: 5, Workers: 10, Queues: []string{"mail", "video"}, Jobs: jobs, Duration: time.Duration(seconds) * time.Second,
			Heartbeat: 500 * time.Millisecond, Silence: 2 * time.Second, Lease: 15 * time.Second, Drain: 5 * time.Second, Settle: 30 * time.Second,
			Topology: "one redis-server, a proxy for each node",
			Work:     history.Work{Producers: 3, Shortest: 20 * time.Millisecond, Longest: 400 * time.Millisecond, Delayed: 150, Failing: 50},
		},
	}
	v := &check.Verdict{Verdict: check.Pass, Measures: map[string]float64{
		check.MeasureLost: 0, check.RecoveryP50: 2210, check.RecoveryP95: 2860, check.RecoveryMax: 3120.5, check.LateP50: 1.4, check.LateP99: 11, check.LateMax: 210,
		check.MeasureDuplicates: 9, check.Throughput: 318.25, "of_a_later_judge": 7,
	}, Took: 184_000}
	for i, name := range check.Names() {
		v.Invariants = append(v.Invariants, check.Invariant{Name: name, Sentence: "what " + name + " says holds", Verdict: check.Pass, Checked: jobs + i})
	}
	for _, name := range check.Coverages() {
		v.Coverage = append(v.Coverage, check.Coverage{Name: name, Have: draw.IntN(300), Need: draw.IntN(2) * 3})
	}
	v.Bars = []check.Bar{{Measure: check.RecoveryP95, Most: 3000, Have: 2860, Verdict: check.Pass, Why: "promise 6"}, {Measure: check.RecoveryMax, Most: 5000, Have: 3120.5, Verdict: check.Pass}}
	for i := range jobs {
		h.Steps = append(h.Steps, history.Step{Queue: "mail", Index: int64(i), US: h.Run.Begin + int64(i)*int64(seconds)*second/int64(jobs), Script: "exchange", Moves: []history.Move{{What: history.Settle, ID: fmt.Sprint(i)}}})
	}
	for at := int64(0); at < int64(seconds)*second; at += second / 4 {
		h.Samples = append(h.Samples, aSample(draw, h.Run.Begin+at, at))
	}
	for n := 1; n <= seconds/5; n++ {
		addKill(h, v, draw, n)
	}
	v.Recovery = []check.Bucket{{Most: 500, Count: 0}, {Most: 1000, Count: 1}, {Most: 1500, Count: 2}, {Most: 2000, Count: 3}, {Most: 2500, Count: 6}, {Most: 3000, Count: 2}, {Most: 3120.5, Count: 1}}
	v.Lateness = []check.Bucket{{Most: 1, Count: 300}, {Most: 2, Count: 810}, {Most: 5, Count: 240}, {Most: 10, Count: 40}, {Most: 20, Count: 9}, {Most: 210, Count: 3}}
	return h, v
}

func aSample(draw *rand.Rand, t, at int64) history.Sample {
	s := history.Sample{
		T: t, Jobs: map[string]int64{"active": 30 + draw.Int64N(20), "waiting": draw.Int64N(400), "delayed": 100 + draw.Int64N(80)},
		Members: map[string]int{}, Sweeper: fmt.Sprintf("0199-session-%d", at/(17*second)), Epoch: 1_790_000_000_000_000 + at/(17*second), Memory: 30<<20 + at, Timer: draw.Int64N(900),
	}
	for node := range 5 {
		s.Members[fmt.Sprint("n", node+1)] = 5 - draw.IntN(2)
	}
	return s
}

func addKill(h *history.History, v *check.Verdict, draw *rand.Rand, n int) {
	t := h.Run.Begin + int64(n)*5*second - second*2
	node, session := fmt.Sprint("n", n%5+1), fmt.Sprintf("0199-session-%d", n)
	kinds := []string{"kill", "kill", "kill", "drop-reply", "redis-pause", "cut-redis"}
	kind := kinds[n%len(kinds)]
	lasts := map[string]int64{"redis-pause": 3, "cut-redis": 2}[kind] * second
	h.Strikes = append(h.Strikes,
		history.Strike{T: t - 100, Phase: history.Health, N: n, Kind: kind, OK: true},
		history.Strike{T: t, Phase: history.Begin, N: n, Kind: kind, Aim: "holder"},
		history.Strike{T: t + 50, Phase: history.Hit, N: n, Kind: kind, Target: node, Session: session, Sweeper: n%4 == 0, Held: []string{"mail/1", "mail/2", "video/3"}},
		history.Strike{T: t + 100 + lasts, Phase: history.End, N: n, Kind: kind},
		history.Strike{T: t + 200 + lasts, Phase: history.Health, N: n, Kind: kind, OK: true})
	if kind != "kill" {
		return
	}
	noticed, condemned := 800_000+draw.Int64N(400_000), 2_000_000+draw.Int64N(300_000)
	v.Kills = append(v.Kills, check.Recovery{
		N: n, Kind: kind, Node: node, Session: session, T: t + 50, Noticed: noticed, Condemned: condemned, Moved: condemned + 9000,
		Running: condemned + 20_000 + draw.Int64N(600_000), Jobs: 3, RedisUp: true, Free: n%7 != 0, Sweeper: n%4 == 0,
	})
	v.Duplicates = append(v.Duplicates, check.Duplicate{
		ID: fmt.Sprint("job-", n), Queue: "mail", Cause: fmt.Sprintf("%s was killed while it ran", node), Fault: n,
		Runs: []check.Span{{Node: node, Attempt: 1, Fence: 1_790_000_000_000_000 + int64(n), From: t - 3000}, {Node: "n1", Attempt: 2, Fence: 1_790_000_000_100_000, From: t + condemned, To: t + condemned + 80_000, Outcome: "ok"}},
	})
}
