package life

import (
	"slices"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// move does one move. What a move means to others than the job it names is told
// in the steps themselves.
func (q *Queue) move(m history.Move) {
	switch m.What {
	case history.Store:
		q.store(m)
	case history.Exists:
		q.exists(m)
	case history.Settle:
		q.settle(m)
	case history.Stale:
		q.stale(m)
	case history.Promote:
		q.promote(m)
	case history.Claim:
		q.claim(m)
	case history.SpentOut, history.Later:
		q.aside(m)
	case history.Reclaim:
		q.reclaim(m)
	case history.Revive:
		q.revive(m)
	case history.Reschedule:
		q.reschedule(m)
	case history.Forget, history.Drop:
		q.forget(m)
	case history.Orphan, history.Stray:
		q.repair(m)
	case history.Bye, history.Gone, history.Condemn:
		q.part(m)
	}
}

// at returns the job of a move, which must be in one of some places. Where it is
// not, the move is told as wrong, and the job is taken to be in the first one.
func (q *Queue) at(m history.Move, places ...string) Job {
	j, known := q.jobs[m.ID]
	switch {
	case known && slices.Contains(places, j.Place):
		return j
	case !known && q.blind:
		j = Job{Spent: m.Spent, Fence: m.Fence, Session: m.Session, Due: 0}
		if q.spends(m) {
			j.Spent--
		}
	case !known:
		q.broke(Phantom, m.ID, "%s of a job that nobody enqueued", m.What)
	default:
		q.misplaced(m, j)
	}
	j.Place = places[0]
	return j
}

// misplaced tells what a move from the wrong place breaks.
func (q *Queue) misplaced(m history.Move, j Job) {
	where := j.Place
	if where == Nowhere {
		where = "nowhere"
	}
	switch {
	case j.Over():
		q.broke(Final, m.ID, "%s of a job that is %s", m.What, where)
	case m.What == history.Claim && j.Place == Active:
		q.broke(Settlement, m.ID, "%s claimed it with fence %d while %s had it with fence %d", m.Session, m.Fence, j.Session, j.Fence)
	case m.What == history.Claim && j.Place == Delayed && j.Due > q.ms():
		q.broke(Early, m.ID, "it was claimed while it was delayed, %d ms before its due time", j.Due-q.ms())
	case m.What == history.Settle || m.What == history.Reclaim:
		q.broke(Settlement, m.ID, "%s of the attempt of %s with fence %d, while the job is %s", m.What, m.Session, m.Fence, where)
	default:
		q.broke(Place, m.ID, "%s of a job that is %s", m.What, where)
	}
}

// spends reports that a move spends an attempt.
func (q *Queue) spends(m history.Move) bool {
	return m.What == history.Settle && (m.Verb == "R" || m.Verb == "D") ||
		m.What == history.Reclaim && m.To != Cancelled && m.To != Nowhere
}

// end puts a job where it stays.
func (q *Queue) end(m history.Move, j Job) {
	j.Place, j.Until, j.Ended = m.To, m.Until, q.step.US
	q.put(m.ID, j)
}

// waits puts a job into waiting or delayed.
func (q *Queue) waits(m history.Move, j Job, to string, due int64) {
	switch {
	case to == Delayed && due <= q.ms() && m.What == history.Store:
		q.broke(Place, m.ID, "it was due already, but was stored as delayed")
	case to == Waiting && due > q.ms():
		q.broke(Early, m.ID, "%s put it into waiting %d ms before its due time", m.What, due-q.ms())
	}
	j.Place, j.Due = to, due
	q.put(m.ID, j)
}

func (q *Queue) store(m history.Move) {
	q.counts.totals.Enqueued++
	if old, known := q.jobs[m.ID]; known && old.Over() {
		q.broke(Final, m.ID, "it was stored again while it was known as %s", old.Place)
	} else if known && old.Place != Nowhere {
		q.broke(Place, m.ID, "it was stored again while it was %s", old.Place)
	}
	if m.To != Waiting && m.To != Delayed {
		q.broke(Place, m.ID, "it was stored as %q", m.To)
	}
	q.waits(m, Job{Max: m.Max}, m.To, m.Due)
}

// exists: an id that Redis knows refuses another job, and nothing else does.
func (q *Queue) exists(m history.Move) {
	if q.jobs[m.ID].Kept() == Nowhere && !q.blind {
		q.broke(Place, m.ID, "an enqueue was refused as if its id were known")
	}
}

func (q *Queue) promote(m history.Move) {
	q.counts.totals.Promoted++
	j := q.at(m, Delayed)
	if j.Due == 0 {
		j.Due = m.Due
	}
	if j.Due != m.Due {
		q.broke(Early, m.ID, "it was promoted as due at %d ms, but its due time is %d ms", m.Due, j.Due)
	}
	q.waits(m, j, Waiting, j.Due)
}

func (q *Queue) claim(m history.Move) {
	q.counts.totals.Claimed++
	j := q.at(m, Waiting)
	switch {
	case q.senders[m.Session].gone:
		q.broke(Gone, m.ID, "%s claimed it after it was marked gone", m.Session)
	case m.Session != q.step.Who:
		q.broke(Settlement, m.ID, "%s claimed it for %s", q.step.Who, m.Session)
	}
	if m.Fence <= q.counts.fence {
		q.broke(Settlement, m.ID, "it was claimed with fence %d after fence %d", m.Fence, q.counts.fence)
	}
	if q.jobs[m.ID].Place == Waiting && j.Due > q.ms() {
		q.broke(Early, m.ID, "it was claimed %d ms before its due time", j.Due-q.ms())
	}
	if m.Spent != j.Spent {
		q.broke(Attempts, m.ID, "it was claimed as if %d attempts were spent, but %d are", m.Spent, j.Spent)
	}
	if j.Max > 0 && j.Spent >= j.Max {
		q.broke(Attempts, m.ID, "it was claimed when all %d attempts were spent", j.Max)
	}
	q.counts.fence = max(q.counts.fence, m.Fence)
	j.Place, j.Fence, j.Session = Active, m.Fence, m.Session
	q.put(m.ID, j)
}

// aside: what a claim found and did not take.
func (q *Queue) aside(m history.Move) {
	j := q.at(m, Waiting)
	if m.What == history.Later {
		if j.Stalls < 2 && !q.blind {
			q.broke(Place, m.ID, "it was put aside with %d stalls", j.Stalls)
		}
		q.waits(m, j, Delayed, m.Due)
		return
	}
	q.counts.totals.Dead++
	if j.Max > 0 && j.Spent < j.Max {
		q.broke(Attempts, m.ID, "it went to dead with %d of %d attempts spent", j.Spent, j.Max)
	}
	q.end(history.Move{ID: m.ID, To: Dead}, j)
}
