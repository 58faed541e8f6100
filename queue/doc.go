// Package queue keeps jobs in Redis and moves them between states.
//
//	             ┌──────────── promote ────────────┐
//	enqueue ─▶ delayed                             ▼
//	   └───────────────────────────────────────▶ waiting ─ exchange ─▶ active ─ exchange ─▶ completed
//	                ▲  ▲                           ▲                     │ │ │
//	                │  └── failed, snoozed ────────┼─────────────────────┘ │ └─▶ dead ─ revive ─▶ waiting
//	           reschedule                          └─ handed back, stalled ┘
//
// Each arrow is one script in lua/, one atomic step of Redis. A script reads and
// checks everything before its first write, since Redis does not roll back, and
// writes the new place of a job before it removes the old one.
//
// # Who may do what
//
// A claim gives a job a token, "<fence> <session>". The fence rises with every
// claim of the queue. A settlement shows the whole token, so a worker that lost
// its job may still run, but can no longer change it. A session that was
// condemned is marked gone in a queue before its jobs move, and claims nothing
// after that.
//
// Whoever changes a queue is a sender and numbers its commands: its turns. Redis
// refuses a turn that is not higher than the last one, so a late or copied
// command does nothing. A client repeats a turn whose answer was lost, with the
// same content, and gets the outcomes of the first time, kept for 20 minutes. A
// command carries Redis's own time of the answer before it; when that is more
// than 5 minutes old nothing is done. 5 minutes is less than the 20 for which
// outcomes are kept and the 10 for which a chosen id is, so neither a late copy
// nor a client that slept is let in again.
//
// # Whose clock
//
// Redis's. Nodes send durations, and the script adds them to its own time. Only
// an instant that the caller gave travels as it is. Clocks of nodes take no part.
//
// # Layout
//
// Two big hashes hold all bodies (jobs) and what went wrong with them (tries);
// every other key is an index of ids. A body is a line of text that a script can
// read with a pattern, a newline, and the payload to the bit. There is no key
// per job: one HDEL removes a batch, and Redis spends its memory on jobs instead
// of on key names. TestMemoryPerJob measures the bytes of a job.
//
// # The log
//
// Client.KeepLog makes the scripts say what they change: each call appends one
// entry to the list called log, in the same atomic step, as its last write. So
// the order of the entries is the order of what happened, and their replay gives
// the place, the token and the spent attempts of every job; what Redis loses of
// the one it loses of the other. A call that changed nothing, or was refused as
// a whole, writes no entry; a settlement that was refused is a line of one. A log
// is for tests and chaos runs, since it grows with every move and nothing trims
// it. Switched off it costs one more field that a script reads of meta.
//
// # Where it differs from a plain reading of the design
//
//   - A time in a new error line is written by the script: the holder sends "@".
//   - The header has one letter per option that is not the default, so that a
//     script finds the retention and the chosen id without knowing the rest.
//   - Verbs of settlements that are sent again come in lower case: a refusal of
//     one is not counted as stale, as the first one may have been applied.
//   - The audit's repair is a script of its own (repair.lua), which looks again
//     in one step at what the audit suspected.
//   - A retention below 10 minutes counts as 10 where the id was chosen, and a
//     chosen id whose job was dropped from a full dead leaves its header too.
//   - A client puts its queue into the registry again once a minute: a connection
//     that broke while idle is replaced without a word.
//   - A repeat that waits for replicas writes something, since WAIT counts from
//     the last write of its own connection.
//   - Who condemns a session takes those of a day ago out of condemned.
//   - raise removes descriptions of nodes that are no session, once a term.
//
// # Not promised
//
// That a handler runs only once, that jobs of different priorities or queues
// keep an order, that two handlers exclude each other, and anything that Redis
// does not keep: after a failover the last acknowledged jobs may be missing and
// finished ones may be back.
package queue
