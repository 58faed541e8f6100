package scenario

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// herd is what most scenarios start from: the settings that a user has, but for
// a shorter drain.
func herd(nodes, jobs int, d time.Duration) history.Settings {
	return history.Settings{
		Nodes: nodes, Workers: 10, Queues: []string{"orders", "mail"}, Jobs: jobs, Duration: d,
		Heartbeat: 500 * time.Millisecond, Silence: 2 * time.Second, Lease: 15 * time.Second,
		Drain: 5 * time.Second, Settle: time.Minute,
		Work: history.Work{
			Producers: 2, Shortest: 5 * time.Millisecond, Longest: 150 * time.Millisecond,
			Delayed: 150, Later: 5 * time.Second,
			Failing: 60, Panicking: 10, Snoozing: 10, Dropping: 5, Doomed: 2, Deaf: 10, Parents: 5, Overrun: 2,
			Chosen: 100, CLI: 20, Batched: 200, Impatient: 5, Moved: 20, Revived: 2,
		},
	}
}

// short is a herd with a lease that a run of half a minute can outlast.
func short(nodes, jobs int, d time.Duration) history.Settings {
	s := herd(nodes, jobs, d)
	s.Lease = 5 * time.Second
	return s
}

// long gives a herd handlers that are still running when something strikes.
func long(s history.Settings, from, to time.Duration) history.Settings {
	s.Work.Shortest, s.Work.Longest = from, to
	return s
}

// delayed gives a herd jobs of which most are due later.
func delayed(s history.Settings, share int, later time.Duration) history.Settings {
	s.Work.Delayed, s.Work.Later = share, later
	return s
}

// none is the bar of what must not happen.
func none(measure, why string) history.Bar { return history.Bar{Measure: measure, Why: why} }

// recovery is how soon the jobs of a killed node run elsewhere.
var recovery = []history.Bar{
	{Measure: "recovery_p95_ms", Most: 3000, Why: "kill -9 to the start of the last job of the node, slots free"},
	{Measure: "recovery_max_ms", Most: 5000},
}

var nothingLost = none("lost", "Redis kept all that it had acknowledged")
