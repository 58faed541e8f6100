package chaos

import (
	"time"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/scenario"
)

// Options of a run.
type Options struct {
	Scenario scenario.Scenario
	Draw     scenario.Options // Foreign follows from Redis
	Redis    string           // address of somebody's own; "": servers of the run
	Dir      string           // of the history; it must not hold another one
	Kelpie   string           // path of the binary under test
	Skewed   string           // path of it with a clock that can be off; "": the run builds one where it needs it
	Netns    bool             // each node in a network namespace of its own: needs root and Linux
	Command  string           // that repeats the run, for people
	Version  string           // of the binary that judges
	Commit   string

	// Tell takes sentences on what happens, one at a time; nil: nobody listens.
	Tell func(string)
	// Show takes the state of the run a few times a second, one at a time; nil:
	// nobody looks.
	Show func(Progress)
}

// Progress is the state of a run.
type Progress struct {
	Scenario string
	Seed     uint64
	Step     string // starting, striking, settling, stopping, judging
	Elapsed  time.Duration
	Duration time.Duration // of faults and work
	Struck   int           // faults that have begun
	Planned  int
	Now      []string // kinds of the faults that last
	Accepted int64    // jobs in the queues, ended ones too
	Ended    int64
	Active   int64
	Sweeper  string // name of the node; "": none is known
}

// Result is what a run, or a kept folder, shows.
type Result struct {
	Dir     string
	History *history.History
	Verdict *check.Verdict
}
