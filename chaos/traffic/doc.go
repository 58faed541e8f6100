// Package traffic makes the jobs of a chaos run.
//
// Plan draws all jobs from the seed and the settings of the run: the same seed
// gives the same plan. Each item of it has a number and belongs to one producer.
// Produce is the body of such a producer, a process of its own: it makes its
// calls at their time, through the library or by running "kelpie enqueue", and
// writes each to client.jsonl, a line before the call and one behind it.
//
// # Calls and items
//
// A call is numbered by its item and by its try: N = item + try * items of the
// plan. An item whose call was refused for a reason that may pass (Redis away,
// full, busy) gets a new call after a pause, again and again until the run is
// over, so that a plan is finished late rather than never. A call whose outcome
// is unknown is repeated only if the id was chosen: then Redis refuses what is
// there already. Everything else stays unknown, and the judge must find it there
// or not there.
//
// # A producer that is killed
//
// Its calls without an end are unknown. A new process with the same number reads
// client.jsonl and goes on behind them. A "kelpie enqueue" that the killed one
// had begun may still store its jobs: that is within what unknown means.
package traffic
