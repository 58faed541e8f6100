package history

// Op is a line of client.jsonl: a call of a producer begins, or has ended. A
// call whose end is missing has an unknown outcome.
type Op struct {
	T        int64  `json:"t"`
	Phase    string `json:"phase"` // invoke, ok, fail, unknown
	Client   string `json:"client"`
	N        int    `json:"n"`    // of the client; both phases of a call share it
	Verb     string `json:"verb"` // enqueue, reschedule, revive
	By       string `json:"by"`   // library, cli, handler
	Queue    string `json:"queue"`
	ID       string `json:"id,omitempty"` // at invoke: if the caller chose it; at the end: as the call told it, also with an error
	Chosen   bool   `json:"chosen,omitempty"`
	Delay    int64  `json:"delay,omitempty"` // ms
	Due      int64  `json:"due,omitempty"`   // ms by Redis's clock, as reschedule returned it
	Priority int    `json:"priority,omitempty"`
	Max      int    `json:"max,omitempty"` // attempts
	Sum      string `json:"sum,omitempty"` // of the payload, see package work
	Error    string `json:"error,omitempty"`
}

// Phases of an Op.
const (
	Invoke  = "invoke"
	OK      = "ok"
	Fail    = "fail"    // nothing was changed
	Unknown = "unknown" // it may have been applied
)

// Mark is a line of a ledger: a handler starts or ends.
type Mark struct {
	T       int64  `json:"t"`
	E       string `json:"e"` // start, end
	ID      string `json:"id"`
	Queue   string `json:"q"`
	Op      string `json:"op"` // "<client>/<n>" of the call that made the job, from its payload
	Node    string `json:"node"`
	PID     int    `json:"pid"`
	Attempt int    `json:"attempt"`
	Fence   int64  `json:"fence"`
	Sum     string `json:"sum,omitempty"`     // start: of the payload as it arrived; "bad: ..." where it does not match
	Outcome string `json:"outcome,omitempty"` // end: ok, fail, panic, snooze, discard, cut (its context ended)
	Cause   string `json:"cause,omitempty"`   // end: why its context had ended, if it had: shutdown, session lost, timeout, cancelled, or the text; of cut always
}

// Step is a line of log.jsonl: what one call of a script changed.
type Step struct {
	T      int64  `json:"t"`              // when the collector read it, not when it happened
	Queue  string `json:"q"`              // "cluster": sessions, lock and epoch
	Index  int64  `json:"i"`              // place in the log of the queue, from 0
	Back   bool   `json:"back,omitempty"` // Redis lost the log from Index on; no other field is set
	US     int64  `json:"us"`
	Script string `json:"script"`
	Who    string `json:"who"`             // session or client; "" for the sweeper's moves
	Turn   int64  `json:"turn,omitempty"`  // of Who
	Epoch  int64  `json:"epoch,omitempty"` // of a sweeper's move
	Moves  []Move `json:"moves,omitempty"` // none: the queue has seen a new epoch, and nothing else changed
}

// Move is what a step did to one job or session. Places are states of a job;
// "" stands for nowhere.
type Move struct {
	What    string `json:"m"`
	ID      string `json:"id"` // of the job; of the session in join, bye, gone, condemn, raise
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Fence   int64  `json:"f,omitempty"`     // claim; settle, reclaim: of the token that the job had; stale: of the token that was shown
	Session string `json:"s,omitempty"`     // of the same token
	Shown   int64  `json:"shown,omitempty"` // settle: fence of the token that was shown, if it was not the one that the job had
	Verb    string `json:"v,omitempty"`     // settle, stale: C complete R retry D dead S snooze L release U unserved; X: ended as cancelled
	Again   bool   `json:"again,omitempty"` // settle, stale: sent again after an unknown result, or twice in one call; not counted as stale
	Due     int64  `json:"due,omitempty"`   // ms; where To is delayed, of store where a due time was given, of promote and reschedule
	Until   int64  `json:"until,omitempty"` // ms; settle, reclaim, drop: a job that ended stays known until then; 0: it was forgotten at once
	Spent   int    `json:"spent"`           // attempts spent after the move: claim, settle, reclaim, spentout, revive
	Max     int    `json:"max,omitempty"`   // store: attempts allowed
}

// What a Move may be. Each script writes those behind its name.
//
//	enqueue     store, exists
//	exchange    join, settle, stale, promote, claim, spentout, later, orphan, bye
//	promote     promote
//	reclaim     gone, reclaim
//	trim        forget, drop
//	repair      orphan, stray
//	revive      revive
//	reschedule  reschedule
//	beat        bye (cluster)
//	condemn     condemn (cluster)
//	raise       raise (cluster)
const (
	Store      = "store"      // a new job: "" -> waiting or delayed
	Exists     = "exists"     // an enqueue was refused: the id is known
	Join       = "join"       // first exchange of a session with this queue
	Settle     = "settle"     // active -> To ("" : completed or cancelled and forgotten at once; then To is completed or cancelled all the same)
	Stale      = "stale"      // a settlement was refused
	Promote    = "promote"    // delayed -> waiting
	Claim      = "claim"      // waiting -> active
	SpentOut   = "spentout"   // waiting -> dead, found at a claim
	Later      = "later"      // waiting -> delayed, a job with two stalls
	Orphan     = "orphan"     // an id without a body was removed
	Stray      = "stray"      // a body without a place -> waiting
	Bye        = "bye"        // the session said farewell
	Gone       = "gone"       // the session may claim here no more
	Reclaim    = "reclaim"    // active -> waiting, delayed, dead, cancelled or ""
	Forget     = "forget"     // an ended job's time is over
	Drop       = "drop"       // dead was full
	Revive     = "revive"     // dead -> waiting
	Reschedule = "reschedule" // waiting or delayed -> delayed or waiting
	Condemn    = "condemn"    // the session is dead for ever
	Raise      = "raise"      // the holder of the lock, ID, got Epoch
)

// Strike is a line of faults.jsonl.
type Strike struct {
	T       int64    `json:"t"`
	Phase   string   `json:"phase"` // begin, hit, heal, end, skip, health
	N       int      `json:"n"`     // of the plan
	Kind    string   `json:"kind"`
	Aim     string   `json:"aim,omitempty"`
	Target  string   `json:"target,omitempty"`  // name of a node; redis; gossip of a and b: "a|b"
	Session string   `json:"session,omitempty"` // of the node when it was hit
	Sweeper bool     `json:"sweeper,omitempty"` // it held the lock
	PID     int      `json:"pid,omitempty"`
	Held    []string `json:"held,omitempty"`   // "<queue>/<id>" that the session held right after the hit
	Signal  string   `json:"signal,omitempty"` // hit of a process: KILL, TERM or STOP
	Count   int      `json:"count,omitempty"`  // end of drop-reply, late-copy, late and hold: commands that it met
	OK      bool     `json:"ok"`               // health: all nodes that should run beat, and Redis answers
	Note    string   `json:"note,omitempty"`
}

// Phases of a Strike. Begin comes before anything is touched, Hit right after it
// (one for each target), Heal before the repair, End when the repair is done.
const (
	Begin  = "begin"
	Hit    = "hit"
	Heal   = "heal"
	End    = "end"
	Skip   = "skip"   // it found no target, or could not be done here: Note says why
	Health = "health" // OK says how it was, before Begin and after End
)

// Sample is a line of samples.jsonl.
type Sample struct {
	T       int64            `json:"t"`
	Jobs    map[string]int64 `json:"jobs"`    // by state, over all queues
	Totals  map[string]int64 `json:"totals"`  // counters, over all queues
	Active  map[string]int   `json:"active"`  // by session: what it holds in Redis
	Members map[string]int   `json:"members"` // by node: how many members it sees in gossip
	Sweeper string           `json:"sweeper"` // session
	Epoch   int64            `json:"epoch"`
	Memory  int64            `json:"memory"`          // of Redis, bytes
	Timer   int64            `json:"timer"`           // how late a plain timer of the runner was, µs: how busy the machine is
	Error   string           `json:"error,omitempty"` // Redis did not answer
}

// Tick is a line of clock.jsonl: Redis's clock was read between T and After.
type Tick struct {
	T     int64 `json:"t"`
	After int64 `json:"after"`
	US    int64 `json:"us"`
}

// Final is final.json.
type Final struct {
	T         int64                 `json:"t"`
	Settled   bool                  `json:"settled"` // nothing waited, was delayed or active any more
	Waited    int64                 `json:"waited"`  // µs from the end of the last fault until then, or until the run gave up
	Queues    map[string]QueueFinal `json:"queues"`
	Sessions  []string              `json:"sessions"`
	Condemned []string              `json:"condemned"`
}

// QueueFinal is all that a queue holds.
type QueueFinal struct {
	Places  map[string][]string `json:"places"` // state -> ids
	Tokens  map[string]string   `json:"tokens"` // of the active ones
	Bodies  map[string]string   `json:"bodies"` // id -> header of its body
	Sums    map[string]string   `json:"sums"`   // id -> checksum of its payload, see package work; not of bodies that were cut to the header
	Tries   map[string]string   `json:"tries"`  // id -> its value
	Totals  map[string]int64    `json:"totals"` // counters of meta that only rise
	Cancels []string            `json:"cancels,omitempty"`
}
