// Package node is one process of the herd: it claims jobs, runs handlers and
// keeps its session alive.
//
//	Run ─ state directory ─ Redis ─ http ─ gossip ─ incarnation ─┬ exchanger (one per queue) ─ handlers
//	                                                             ├ heart, patrol, roll caller, listener
//	                                                             └ lock ─ sweeper
//
// An incarnation is the life of one session id. It ends when the node drains,
// or when the session was condemned: then its handlers are cancelled, what they
// return is sent and refused, and a new incarnation starts beside them. Slots
// are counted over both, so a node never runs more handlers than it has workers.
//
// For each queue one exchange is in flight. It takes along every settlement
// that was decided meanwhile and asks for as many jobs as there are free slots.
// Nothing waits for a timer: an idle queue sends at once, a busy one sends big
// batches. An exchange with an unknown result makes a barrier: its settlements
// are sent again, the next exchange claims nothing, and after its answer no
// older command can act, so a roll call finds jobs that this session holds and
// does not run.
//
// A node with free slots blocks on the wake tokens of its queues. Tokens are
// hints: once a second it asks how many jobs wait, so a lost token costs a
// second. The wait cannot be cut short, so it begins when exchanges in flight
// have been answered: a queue that these have emptied is listened to as well. A
// queue that fails takes no share from the others; one that had jobs and gave
// none (paused, at its limit) rests until its next token, a second at the most
// for each such queue.
//
// Where more queues have work than there are slots they take turns by weight.
//
// The outcome of an attempt is decided once: by the handler, or by the node
// where the handler ignores the end of its context. What the node ended by
// itself (shutdown, lost session, doubt) is handed back and spends no attempt.
//
// Doubt: after 2/3 of the lease without an answered heartbeat this node may have
// been replaced. It cancels its handlers and claims nothing until a heartbeat is
// answered. While gossip says that no peer reaches Redis either, nobody can
// condemn it, and handlers run on; peers that lose Redis after the doubt has
// begun do not end it.
//
// The witness of a death is a refused connection, or none together with gossip's
// word. An accepted one is a sign of life, except where another session, which
// beats in Redis, has that very address in gossip: a supervisor has started the
// node again on its old port, and a port has one owner. A node that dies before
// another one has met it, in the first tenths of a second after its start, has no
// witness but such a successor: its jobs wait for the lease.
//
// Not promised: that a handler which ignores its context ends. Its slot stays
// taken, and its late result is refused.
package node
