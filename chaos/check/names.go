package check

// Names of the invariants.
const (
	Lost        = "lost"
	Phantom     = "phantom"
	Place       = "place"
	Settlement  = "settlement"
	Attempts    = "attempts"
	FinalState  = "final"
	Early       = "early"
	Slots       = "slots"
	Epoch       = "epoch"
	Turns       = "turns"
	Gone        = "gone"
	Condemned   = "condemned"
	Graceful    = "graceful"
	Payload     = "payload"
	Counters    = "counters"
	Settled     = "settled"
	Duplicated  = "duplicates"
	Full        = "full"
	Linearizing = "unknown"
)

// rules are the invariants with their sentences, in the order of a report.
var rules = []struct{ name, sentence string }{
	{Lost, "every accepted job ended in exactly one final state, or was lost by Redis within its documented window"},
	{Phantom, "every job was enqueued by somebody, and every run of a handler was claimed"},
	{Place, "every id was in exactly one place, none without a body and no body without a place"},
	{Settlement, "attempts of a job never overlapped in Redis, and only the current token settled it"},
	{Attempts, "no job spent more attempts than it was allowed, and each ended attempt was counted rightly"},
	{FinalState, "a job that had ended never moved again, unless an operator revived it"},
	{Early, "no job started before its due time by Redis's clock"},
	{Slots, "no session ever held or ran more jobs than it has workers"},
	{Epoch, "epochs only rose, and no queue obeyed an older one than it had seen"},
	{Turns, "the turns of each sender only rose"},
	{Gone, "no session claimed anything after it was marked gone"},
	{Condemned, "every condemned session had been killed, stopped, cut off or replaced, so no outage of Redis condemned anybody or spent an attempt"},
	{Graceful, "graceful stops spent no attempt"},
	{Payload, "every payload arrived at its handler as it was enqueued"},
	{Counters, "the counters of each queue are equal to what its log shows"},
	{Settled, "after the last fault everything came to rest within the bound"},
	{Duplicated, "every second run of an attempt, and every two runs at the same time, have a fault as their cause"},
	{Full, "settlements went on while Redis was full"},
	{Linearizing, "what clients were told fits one order of events for each job"},
}

// Names returns the names of all invariants in the order of a report.
func Names() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// Names of what a run may have to contain, see Coverage.
const (
	Struck        = "faults"                 // of the plan, that hit something
	KillsMidJob   = "kills mid-job"          // kill -9 of a node that held jobs
	SweeperKills  = "sweeper kills"          // kill -9 of the holder of the lock
	StopsMidJob   = "graceful stops mid-job" // SIGTERM of a node that held jobs
	StopsBeyond   = "stops beyond the lease" // SIGSTOP after which the session was condemned
	Refused       = "refused settlements"    // late ones
	Outcomes      = "unknown outcomes"       // calls of producers without an answer
	Reclaimed     = "reclaimed jobs"
	LostReplies   = "lost replies" // replies that the proxy dropped
	LateCopies    = "late copies"  // commands that arrived again or late
	RedisRestarts = "redis restarts"
	RedisOutages  = "redis outages" // Redis paused, busy or away
	Partitions    = "partitions"    // cuts of nodes from Redis or from each other
	Promotions    = "promotions"
	Retries       = "retries"
	DeadJobs      = "dead jobs"
	Sweepers      = "sweepers" // different sessions that became sweeper
	Jobs          = "jobs"     // accepted
	Failovers     = "failovers"
	Rollbacks     = "rollbacks"     // times that Redis lost its last writes
	FullRedis     = "full"          // settlements while Redis was full
	Twins         = "refused twins" // enqueues of an id that was known
)

// coverages is the order of a report.
var coverages = []string{
	Struck, KillsMidJob, SweeperKills, StopsMidJob, StopsBeyond, Refused, Outcomes, Reclaimed, LostReplies, LateCopies,
	RedisRestarts, RedisOutages, Partitions, Promotions, Retries, DeadJobs, Sweepers, Jobs, Failovers, Rollbacks, FullRedis, Twins,
}

// Coverages returns the names of all that may have to happen, in the order of a
// report.
func Coverages() []string { return append([]string(nil), coverages...) }

// Names of the measures.
const (
	MeasureLost       = "lost"            // accepted jobs that are nowhere, also those within Run.Loss
	RecoveryP50       = "recovery_p50_ms" // kill to the start of the last job that the node held; kills with Redis up and slots free
	RecoveryP95       = "recovery_p95_ms" //
	RecoveryMax       = "recovery_max_ms" //
	LateP50           = "late_p50_ms"     // start minus due by Redis's clock, of delayed jobs that found a free slot
	LateP99           = "late_p99_ms"     //
	LateMax           = "late_max_ms"     //
	MeasureDuplicates = "duplicates"      // Duplicate, all causes
	MeasureReclaimed  = "reclaimed"       // jobs taken from dead sessions
	SpentGraceful     = "attempts_spent_graceful"
	Unexplained       = "condemned_unexplained"
	StaleRefused      = "stale_refused"      // settlements of attempts that were over otherwise
	SettledAgain      = "settled_again"      // refused settlements that had counted and were sent again, since no answer came
	PausePromotion    = "pause_promotion_ms" // the longest time that a due job lay unpromoted
	Throughput        = "throughput"         // settled jobs a second, from the first job to the last
	SettleTime        = "settle_ms"          // from the end of the last fault until all was at rest
	LossWindow        = "loss_window_ms"     // age of the oldest acknowledged job that Redis lost, when it lost it
)
