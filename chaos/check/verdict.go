package check

// What a verdict can be, of the whole run and of each invariant. Unknown means
// that the history cannot tell: too little happened, or the set-up was broken.
const (
	Pass    = "PASS"
	Fail    = "FAIL"
	Unknown = "UNKNOWN"
)

// Verdict is what the judge says about a history. Its JSON is report.json.
type Verdict struct {
	Verdict    string             `json:"verdict"`
	Why        []string           `json:"why,omitempty"` // one sentence for each thing that keeps it from PASS, the gravest first
	Invariants []Invariant        `json:"invariants"`    // always all of them, in the order of Names
	Coverage   []Coverage         `json:"coverage"`      // always all of them, in the order of Coverages
	Measures   map[string]float64 `json:"measures"`      // by name, see Measures; one that could not be taken is missing
	Bars       []Bar              `json:"bars"`          // in the order of Run.Bars
	Kills      []Recovery         `json:"kills"`         // in the order of time
	Duplicates []Duplicate        `json:"duplicates"`    // the unexplained first; at most MostDuplicates
	Recovery   []Bucket           `json:"recovery"`      // ms, of Kills with a Running and Redis up
	Lateness   []Bucket           `json:"lateness"`      // ms, of the delayed jobs that found a free slot
	Lost       []string           `json:"lost"`          // "<queue>/<id>" of accepted jobs that are nowhere, also of those within Run.Loss; at most MostDetails
	Took       int64              `json:"took"`          // µs that the judge needed
}

// Bounds of the lists in a Verdict. Counts are always of all.
const (
	MostDetails    = 20
	MostDuplicates = 1000
)

// Invariant is one rule that a history must not break.
type Invariant struct {
	Name     string   `json:"name"`
	Sentence string   `json:"sentence"` // what holds if it is PASS
	Verdict  string   `json:"verdict"`
	Checked  int      `json:"checked"` // how many jobs, moves or whatever the rule speaks of were looked at
	Count    int      `json:"count"`   // violations
	Details  []string `json:"details,omitempty"`
}

// Coverage is how often something happened that a run must contain to prove
// anything. Fewer than Need make the verdict UNKNOWN.
type Coverage struct {
	Name string `json:"name"`
	Have int    `json:"have"`
	Need int    `json:"need"` // 0: nobody asked for it
}

// Bar is a figure of Run.Bars and what was measured.
type Bar struct {
	Measure string  `json:"measure"`
	Most    float64 `json:"most"`
	Have    float64 `json:"have"`
	Verdict string  `json:"verdict"` // UNKNOWN: it could not be measured
	Why     string  `json:"why,omitempty"`
}

// Recovery is what followed one kill of a node that held jobs. Durations are µs
// from the kill by this machine's clock; 0 where it never came.
type Recovery struct {
	N         int    `json:"n"` // of the fault in the plan
	Kind      string `json:"kind"`
	Node      string `json:"node"`
	Session   string `json:"session"`
	T         int64  `json:"t"`         // of the kill
	Noticed   int64  `json:"noticed"`   // until another node's session was seen to be missing it: see doc.go; 0 unknown
	Condemned int64  `json:"condemned"` // until the session was condemned
	Moved     int64  `json:"moved"`     // until the last of its jobs was reclaimed
	Running   int64  `json:"running"`   // until the last of its jobs was claimed again, those that wait by right (delayed) left out
	Jobs      int    `json:"jobs"`      // that it held
	RedisUp   bool   `json:"redis_up"`  // no fault of Redis, of the network or of the sweeper's host between kill and Running
	Free      bool   `json:"free"`      // slots were free for all of Jobs all the time
	Sweeper   bool   `json:"sweeper"`   // it held the sweeper lock
}

// Duplicate is a second start of a handler for the same attempt of a job, or a
// start while another run of that job had not ended.
type Duplicate struct {
	ID      string `json:"id"`
	Queue   string `json:"queue"`
	Runs    []Span `json:"runs"`            // all of the job that belong to it, by their start
	Overlap bool   `json:"overlap"`         // two ran at the same time
	Cause   string `json:"cause,omitempty"` // one sentence; "" if the history has none
	Fault   int    `json:"fault,omitempty"` // N of the fault that explains it
}

// Span is one run of a handler.
type Span struct {
	Node    string `json:"node"`
	Attempt int    `json:"attempt"`
	Fence   int64  `json:"fence"`
	From    int64  `json:"from"` // T
	To      int64  `json:"to"`   // T; 0: its end was never written
	Outcome string `json:"outcome,omitempty"`
}

// Bucket counts values above the bound of the one before it, and up to Most.
type Bucket struct {
	Most  float64 `json:"most"` // of the last one: the largest value
	Count int     `json:"count"`
}
