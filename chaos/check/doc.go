// Package check is the judge of a chaos run. It sees the history that the run
// left, and nothing else: no Redis, no node, no clock of its own. The same
// history gets the same verdict, as often as it is asked.
//
//	log of the queues ─▶ life.Space: what no correct queue does
//	ledgers           ─▶ what ran, where, under which claim, with which payload
//	calls             ─▶ what producers were told, and whether it is true
//	faults            ─▶ what explains a condemned session, a lost job, a second run
//	final             ─▶ what is left where, against the log and against itself
//
// # The verdict
//
// FAIL: a rule was broken, or a measure is over its bar. UNKNOWN: no rule was
// broken, but too little happened to prove anything (Coverage), the set-up was
// broken, or the log is not whole. PASS is all the rest: no violation was found
// in this history, which is not a proof that there is none in the program.
//
// # What excuses what
//
// A session may be condemned if it was killed, stopped, asked to stop or cut off
// from Redis. An outage, a pause or a full Redis excuses nobody's death, and so
// no attempt that was spent by one. A session that comes back must not be
// condemned any more some seconds after that.
//
// A job may be lost only if Redis lost writes after it had accepted it, and only
// within the window of Run.Loss. A kill of a Redis that syncs each write excuses
// nothing.
//
// A second run of a job is right when the first attempt failed, snoozed, was
// handed back or was revived. All others are duplicates and need a cause.
//
// # Clocks
//
// Order in a queue comes from its log alone. Where a log is held against faults
// or ledgers, times of Redis are translated by the pairs in the history, and
// 100 ms are forgiven.
//
// # Not judged
//
// Order within a priority, limits, pauses, and lateness and recovery beyond what
// Run.Bars ask. How many jobs a session holds in Redis is not bounded: a slot is
// free when its handler has returned, before Redis knows. The bound is held
// against handlers that run at once in a process, and against claims in one call.
package check
