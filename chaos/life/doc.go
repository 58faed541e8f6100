// Package life is a model of a job's life: what a queue, as its scripts define
// it, can ever do to a job. It replays the log of transitions, one Step after the
// other, and says which of them no correct queue would have made.
//
//	enqueue ─▶ waiting ─ claim ─▶ active ─ settle ─▶ completed, dead, cancelled
//	   └─▶ delayed ─ promote ─▶ waiting      └─ settle, reclaim ─▶ waiting, delayed
//
// The order of a log is the order of what happened, so nothing is searched: each
// move is looked at once, in constant time, against what the moves before it
// left. A move that is wrong is told and then done all the same, so that one
// fault is one violation and not a chain of them.
//
// # When Redis loses its last writes
//
// A Step with Back set takes back all that the log had from its Index on: the
// model returns to what it was, and the moves of the lost branch stay judged.
// After a Back to 0 Redis was empty, and so was the switch of the log for a
// while: such a queue is Blind, and a job of which it sees a move for the first
// time is taken as the move describes it.
//
// # Not looked at
//
// Order within a priority, limits, pauses, and who may run what: the log does
// not have them. Whether a body arrived, and what clients were told, is the
// judge's matter.
package life
