package history

import "time"

// Run says what was to happen. It is written before anything starts, and again
// at the end with Ended set.
type Run struct {
	Seed     uint64   `json:"seed"`
	Scenario string   `json:"scenario"`
	Cases    []string `json:"cases,omitempty"` // of docs/cases.md, that the scenario stands for
	Command  string   `json:"command"`         // repeats the run

	Commit  string `json:"commit"`
	Version string `json:"version"`
	Kelpie  string `json:"kelpie"` // the binary under test
	Go      string `json:"go"`
	System  string `json:"system"`  // kernel, architecture, processors
	Redis   string `json:"redis"`   // "redis-server 7.0.15"
	Durable string `json:"durable"` // "appendfsync always", "appendfsync everysec", "failover", "unknown"

	Started  time.Time      `json:"started"` // wall clock, for people
	Ended    time.Time      `json:"ended,omitzero"`
	Begin    int64          `json:"begin"` // T of the first job
	Settings Settings       `json:"settings"`
	Plan     []Fault        `json:"plan"`
	Needs    map[string]int `json:"needs"` // coverage: see check.Coverage; fewer make the verdict UNKNOWN
	Bars     []Bar          `json:"bars,omitempty"`
	Loss     Loss           `json:"loss"`
}

// Settings of the herd and of the work.
type Settings struct {
	Nodes     int           `json:"nodes"`
	Workers   int           `json:"workers"` // of each node: its bound of active jobs
	Queues    []string      `json:"queues"`
	Jobs      int           `json:"jobs"`
	Duration  time.Duration `json:"duration"` // of faults and work, ns
	Heartbeat time.Duration `json:"heartbeat"`
	Silence   time.Duration `json:"silence"`
	Lease     time.Duration `json:"lease"`
	Drain     time.Duration `json:"drain"`    // of a node that stops
	Settle    time.Duration `json:"settle"`   // after the last fault all jobs must have ended within this
	Topology  string        `json:"topology"` // "one redis-server", "sentinel: 1 master, 2 replicas", ...; with the network
	Work      Work          `json:"work"`
}

// Work says what the jobs are like. Shares are of a thousand jobs; the others
// are due at once, and their handler runs and succeeds.
type Work struct {
	Producers int           `json:"producers"` // processes; they spread the jobs evenly over Duration
	Shortest  time.Duration `json:"shortest"`  // a handler runs for a drawn time, from here
	Longest   time.Duration `json:"longest"`   // to here
	Delayed   int           `json:"delayed"`   // share that is due later
	Later     time.Duration `json:"later"`     // at most so much later
	Together  bool          `json:"together"`  // all delayed jobs are enqueued at once and are due at Begin + Later
	Failing   int           `json:"failing"`   // share whose first attempts fail
	Panicking int           `json:"panicking"` // share whose first attempt panics
	Snoozing  int           `json:"snoozing"`
	Dropping  int           `json:"dropping"`  // share that its handler discards
	Doomed    int           `json:"doomed"`    // share that fails until it is dead
	Deaf      int           `json:"deaf"`      // share whose handler ignores its context
	Parents   int           `json:"parents"`   // share that enqueues further jobs
	Chosen    int           `json:"chosen"`    // share whose id the producer chooses
	CLI       int           `json:"cli"`       // share that is enqueued by the command line
	Batched   int           `json:"batched"`   // share that is enqueued by EnqueueMany
	Impatient int           `json:"impatient"` // share whose caller gives up at once, so that its outcome may be unknown
	Moved     int           `json:"moved"`     // share that is delayed and rescheduled
	Revived   int           `json:"revived"`   // share that fails until it is dead and is revived then
	Twins     int           `json:"twins"`     // share that is enqueued twice in one batch, under one chosen id
	Overrun   int           `json:"overrun"`   // share whose first attempt runs into its timeout
}

// Fault is one planned fault. The plan follows from the seed alone.
type Fault struct {
	N    int           `json:"n"`             // from 1, its name in faults.jsonl
	At   time.Duration `json:"at"`            // after Begin, ns
	For  time.Duration `json:"for,omitempty"` // until it is healed; 0: it heals at once
	Kind string        `json:"kind"`          // kill, stop, cut-redis, ...: see package fault
	Aim  string        `json:"aim,omitempty"` // holder, sweeper, random, others (all but one), all, redis, producer
	// What some kinds need.
	Script string        `json:"script,omitempty"` // name of the script aimed at
	Nth    int           `json:"nth,omitempty"`    // the n-th command after At, from 1
	Times  int           `json:"times,omitempty"`
	Delay  time.Duration `json:"delay,omitempty"`
	Draw   uint64        `json:"draw"` // seed of what is drawn when it strikes, such as which of several nodes
}

// Bar is a figure that must be reached.
type Bar struct {
	Measure string  `json:"measure"` // see check.Measures
	Most    float64 `json:"most"`
	Why     string  `json:"why,omitempty"`
}

// Loss is what this Redis may lose and Kelpie cannot help: jobs acknowledged
// less than Window before it lost its last writes. The zero value allows none.
type Loss struct {
	Window time.Duration `json:"window"`
	Why    string        `json:"why,omitempty"`
}
