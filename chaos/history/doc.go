// Package history is what a chaos run leaves behind, and all that its judge
// sees: a folder of append-only files, one JSON object a line.
//
//	run.json       what was to happen: seed, settings, plan, needs and bars
//	client.jsonl   every call of a producer: invoked, then ok, failed or unknown
//	ledger/*.jsonl every start and end of a handler, written by the node itself
//	log.jsonl      every transition, as Redis made it (the log of the queues)
//	faults.jsonl   every fault: begun, hit what, ended, and the health around it
//	samples.jsonl  what an operator would have seen, a few times a second
//	clock.jsonl    pairs of this machine's clock and Redis's
//	final.json     where every job was when all had come to rest
//
// # Which clock
//
// Times called T are microseconds of this machine's monotonic clock, which all
// its processes share and no step of the wall clock moves. Times called US or MS
// are Redis's own. The pairs in clock.jsonl translate: Redis is asked between
// two readings of the monotonic clock, so the truth lies between them.
//
// # What is true
//
// The log of a queue is written by the scripts in the same atomic step as what
// it tells. Redis runs one script at a time, so the order of the log is the
// order of what happened. Where Redis loses its last writes it loses their log
// with them: a Step with Back set says from which index on the log was written
// anew.
//
// A line is one write, so a process that is killed leaves whole lines and at most
// one torn one, its last, which readers drop: at the end of a file, or right
// before the line of another process that shares it.
package history
