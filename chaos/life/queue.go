package life

import (
	"iter"
	"maps"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// Places of a job. Nowhere is that of one that was never enqueued, or was
// forgotten.
const (
	Nowhere   = ""
	Waiting   = "waiting"
	Delayed   = "delayed"
	Active    = "active"
	Completed = "completed"
	Dead      = "dead"
	Cancelled = "cancelled"
)

// Job is what the model knows of a job.
type Job struct {
	Place   string
	Spent   int    // attempts
	Stalls  int    // of them, since it was enqueued or revived
	Max     int    // attempts allowed; 0: not known
	Due     int64  // ms; when it may start at the earliest; 0: at any time
	Until   int64  // ms; of one that ended: how long Redis knows it; 0: it forgot it at once, except if it is dead
	Fence   int64  // of its last claim
	Session string // whose claim that was
	Ended   int64  // µs; of one that ended
}

// Over reports that the job has ended.
func (j Job) Over() bool { return j.Place == Completed || j.Place == Dead || j.Place == Cancelled }

// Kept returns where Redis has the job: its place, or Nowhere if it ended and
// was forgotten at once.
func (j Job) Kept() string {
	if j.Over() && j.Place != Dead && j.Until == 0 {
		return Nowhere
	}
	return j.Place
}

// sender is what a queue knows of a session or a client.
type sender struct {
	turn int64
	gone bool
}

// counts is what a whole queue has of each kind.
type counts struct {
	fence, epoch int64
	totals       Totals
}

// Queue is the model of one queue.
type Queue struct {
	name    string
	jobs    map[string]Job
	senders map[string]sender
	next    int64 // index of the next entry
	counts  counts
	blind   bool
	journal journal

	step  history.Step // the current one
	wrong []Violation
}

func newQueue(name string) *Queue {
	return &Queue{name: name, jobs: map[string]Job{}, senders: map[string]sender{}}
}

// Job returns a job; one that is not known is Nowhere.
func (q *Queue) Job(id string) Job { return q.jobs[id] }

// Jobs returns all jobs that were ever stored in the surviving log, by id.
func (q *Queue) Jobs() iter.Seq2[string, Job] { return maps.All(q.jobs) }

// Totals returns the counters that the queue must have now.
func (q *Queue) Totals() Totals { return q.counts.totals }

// Blind reports that Redis was emptied, so that the log does not tell all.
func (q *Queue) Blind() bool { return q.blind }

// Totals are counters that only rise, as a queue's meta has them.
type Totals struct {
	Enqueued, Claimed, Completed, Failed, Retried, Dead, Cancelled int64
	Stale, Promoted, Orphans, Strays, Stalled, Revived, Dropped    int64
}

// Map returns the counters by their names.
func (t Totals) Map() map[string]int64 {
	return map[string]int64{
		"enqueued": t.Enqueued, "claimed": t.Claimed, "completed": t.Completed, "failed": t.Failed,
		"retried": t.Retried, "dead": t.Dead, "cancelled": t.Cancelled, "stale": t.Stale, "promoted": t.Promoted,
		"orphans": t.Orphans, "strays": t.Strays, "stalled": t.Stalled, "revived": t.Revived, "dropped": t.Dropped,
	}
}

// ms is the time of the current step as its script saw it.
func (q *Queue) ms() int64 { return q.step.US / 1000 }

// put replaces a job.
func (q *Queue) put(id string, j Job) {
	old, known := q.jobs[id]
	q.journal.job(id, old, known)
	q.jobs[id] = j
}

func (q *Queue) putSender(name string, s sender) {
	old, known := q.senders[name]
	q.journal.sender(name, old, known)
	q.senders[name] = s
}
