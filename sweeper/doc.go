// Package sweeper keeps the job space in order. Every node runs one Sweeper; the
// one that holds the lock sweeps, the others stand by and watch it.
//
//	candidate ─lock obtained▶ raise the epoch ▶ term ─lock lost, fenced▶ candidate
//
// All state is in Redis, and each move is one script that decides there; a
// Sweeper has only plans, and can be killed between any two calls.
//
// # Who is dead
//
// Watch measures silence without any clock but this process's own: how long it
// has seen a beat unchanged over its own answered beats. A gap of 1 s between
// these starts all watches anew, so a pause, restart or failover of Redis
// condemns nobody. Two rules make silence a death:
//
//   - silent for Silence, and a Witness: now. Silence alone, or a witness alone,
//     is nothing.
//   - silent for a Lease, without any witness.
//
// The sweeper judges everybody, a candidate only the holder of the lock. The
// script condemns only if the beat is still the one that was silent, and takes
// the lock of the dead along, so the next candidate need not wait for it to
// expire. Silence counts from when the call was sent that first showed the beat,
// so it may be too long by the time of that call, which is below the gap of 1 s:
// keep the lease more than that above the two thirds of it after which a node
// that gets no answer stops by itself.
//
// # A term
//
// Four loops share a term; none waits for another:
//
//   - promote moves due jobs, a bounded batch for each due queue and round, so
//     that no queue starves another. Then it sleeps until the next due time that
//     Redis told, and calls exactly then.
//   - the poke wait lists the queues each second and blocks on their poke lists:
//     an earlier due time wakes promote. The poke is a hint; each queue is looked
//     at every 10 s without one.
//   - recover empties the dead in all queues: first the mark "gone", after which
//     the session adds nothing, then what it holds, in batches. Sessions that
//     this node condemns come at once, those of others and those that said bye
//     (which should hold nothing) within a second.
//   - audit surveys each queue at the start of the term and every 10 s (5 queues
//     a second): holders that are condemned are emptied at once, holders that are
//     no session only when they have been missed for Silence, since live nodes
//     are missing for a beat after a roll-back of Redis. It repairs ids without a
//     body and bodies without a place, and trims.
//
// An error of any step is told (one line a second and step), and the step is
// tried again within a second; it never ends the loop. FENCED means that a queue
// has seen a higher epoch: whoever still owns the lock raises its own above that
// and goes on, everybody else resigns. Before each call the trust of the tenure
// is asked for, so a process that was stopped notices at its next step; what
// slips through is refused by the epoch, or does what the other would have done.
//
// # Not promised
//
// That only one Sweeper acts: two at once are harmless, by the scripts alone.
//
// A job that is due within a second of the first enqueue ever to a queue that no
// node serves yet may be late by the two seconds until the queue is known.
// In the first 1.2 s of a term a poke may be taken by the wait of the sweeper
// before, which cannot be cut short; every queue is looked at each 0.2 s then.
//
// A first survey does not look for sessions that were condemned before and have
// no mark in a queue: they hold nothing there. A session that was condemned in
// error and joins a queue before it hears of it is found by the next survey.
package sweeper
