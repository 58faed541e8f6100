// Package work is the job of a chaos run: the kind, its payload and its handler,
// which tells a ledger outside Redis what really ran.
//
// # The ledger
//
// Each process of a node has a ledger file of its own. A handler writes its
// start before it does anything, and its end before it returns or panics. A line
// is one write(2) to a file opened for appending, so a kill -9 takes at most the
// end of what ran, never the start. A start without an end means: the process
// died, or the handler still ran when the run was over.
//
// # The payload
//
// It is a JSON object that begins with a checksum of all bytes behind it. A
// handler verifies it as it arrived. Sum is of the whole payload: producers
// record it, handlers record it, and the end of the run reads it from Redis, so a
// payload that was swapped for another good one is found as well.
//
// # Children
//
// A handler that enqueues further jobs chooses their ids from its own job's id
// and their number, so a job that runs twice adds nothing the second time: Redis
// refuses the known id. In the history the repeat is a call of its own that
// failed with "exists": it changed nothing, and it says that an earlier call with
// this id, whatever its own outcome was, did store the job. That holds for the 10
// minutes during which Redis remembers a chosen id after the job's end, and no
// longer than Redis keeps its data: a child stored again after Redis lost it is
// a new store of the same id.
//
// # Not promised
//
// The ledger is not synced to disk: it outlives the process, not the machine.
package work
