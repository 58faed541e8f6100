// Package demo is "kelpie demo": real webhooks, delivered by three node
// processes, of which two are killed in the middle of their work.
//
//	feeder ─enqueue▶ Redis ◀─claim─ 3 x "kelpie node" ─POST▶ receiver
//	                   ▲                   ▲                     │
//	                 watch               faults               referee
//
// The kennel owns every process and file. The store is a redis-server (or
// valkey-server) with AOF if one is on the PATH, else a miniredis in this very
// process. The receiver answers by a plan that is made with each webhook: most
// are taken at once, some slowly, some after a 500 or a 429, and some are
// refused for good. Faults kills the node that holds the most jobs, and later
// the sweeper while it holds some; each time a replacement is started once the
// recovery is over. The feeder stops when that is done, and the demo ends when
// all is delivered, or after 55 seconds.
//
// # What the verdict rests on
//
// On what Enqueue returned and what the receiver saw: Webhook-Id, time of
// arrival, SHA-256 of the body, and whether its answer found a client to read
// it. No counter of a node takes part.
//
//   - lost: accepted, and neither answered with 2xx nor refused for good.
//   - dead: refused for good. The number must be the planned one, and the store
//     must list the very same jobs as dead.
//   - delivered more than once: the receiver was willing to take it on more than
//     one arrival, also where the client died before the answer. This is at
//     least once at work, no fault.
//   - recovery: from the kill to the arrival of the last job that the killed
//     node held. What it held is read from Redis once the process is gone:
//     nobody moves it for two seconds. Arrivals within 0.1 s of the kill do not
//     count, since they were on their way already.
//   - late: first arrival minus due time. The due time is the one that Redis
//     keeps, read back after the enqueue. Redis and receiver run on one machine
//     and read one clock, so the two compare to the millisecond as long as
//     nobody sets that clock meanwhile.
//   - early: an arrival before the due time.
//
// The feeder bounds the unfinished webhooks without delay so that slots stay
// free for the delayed ones, also while a node is missing. Those due between a
// kill of the sweeper and the first look that finds another one at work and
// nothing overdue are counted apart.
//
// # What is left behind
//
// Nothing: the kennel kills what it started and removes its folder on every way
// out of Run. Should the process itself die (panic, kill -9), a shell that
// waits for the end of a pipe does the same (see package process).
package demo
