// Package fault breaks things, one planned fault at a time, and mends them again.
//
//	health ─▶ (a drawn part of a heartbeat) ─▶ aim ─▶ begin ─▶ hit ─▶ For ─▶ heal ─▶ end ─▶ health
//	   │ not well                                │ nobody
//	   ▼                                         ▼
//	  skip                                      skip
//
// Strike does all of it for one fault, and records each step as a line of
// faults.jsonl. It knows nothing of scenarios, of the jobs or of the judge, and
// sees what it breaks through the small interfaces of World; the packages below
// this one have the real things.
//
// # Aims
//
// A fault names a role, and who has it is found at the last moment, in Redis: a
// node that holds jobs, the sweeper, a random one, all but one, all, a producer.
// Where nobody has the role, Strike looks again for some seconds before it skips
// the fault. What is drawn follows from the Draw of the fault; whom it meets also
// depends on what the nodes did, so the same plan need not hit the same node.
//
// # Several faults at once
//
// A fault claims what it has in its hands: the process of a node, its way to
// Redis, gossip, Redis itself. Another one does not aim at those, so no two ever
// restart or heal the same thing against each other. A node may be killed while
// its way to Redis is slow: those are two things.
//
// # Healing
//
// What must be undone is noted before it is done, and undone in the reverse order
// when the fault is over, when a step of it failed, and when the context ends; the
// last two only make it shorter. Healing has a context of its own with a bound.
//
// # Health
//
// Before and after, Redis must answer and every node that no fault has in its
// hands must run and beat, within some seconds. A fault that finds the set-up
// broken is not struck: what follows would prove nothing. What Strike had to do
// by force, such as the kill of a node that did not end on SIGTERM, is no health
// either.
//
// # Not promised
//
// The session of a target is the one that Redis showed when it was chosen; it is
// missing for a process that had none yet. What it held is read right after the
// hit, as far as Redis answers then. A node that Redis shows with a fresh beat may
// still be dying by a cause of its own.
package fault
