package life

import "github.com/kelpiehq/kelpie/chaos/history"

// placeOf says where a settlement leads to.
var placeOf = map[string]string{
	"C": Completed, "R": Delayed, "D": Dead, "S": Delayed, "L": Waiting, "U": Delayed, "X": Cancelled,
}

func (q *Queue) settle(m history.Move) {
	j := q.at(m, Active)
	q.countEnd(m)
	q.token(m, j)
	if want := placeOf[m.Verb]; m.To != want {
		q.broke(Place, m.ID, "verb %q put it into %q", m.Verb, m.To)
	}
	q.spent(m, j)
	j.Spent = m.Spent
	switch m.To {
	case Waiting:
		q.waits(m, j, Waiting, j.Due)
	case Delayed:
		q.waits(m, j, Delayed, m.Due)
	default:
		q.end(m, j)
	}
}

// countEnd counts a settlement as its script does.
func (q *Queue) countEnd(m history.Move) {
	t := &q.counts.totals
	switch m.Verb {
	case "C":
		t.Completed++
	case "R":
		t.Failed++
		t.Retried++
	case "D":
		t.Failed++
		t.Dead++
	case "X":
		t.Cancelled++
	}
}

// token holds what a settlement showed against what the job has.
func (q *Queue) token(m history.Move, j Job) {
	switch {
	case m.Shown != 0 && m.Shown != m.Fence:
		q.broke(Settlement, m.ID, "fence %d of %s settled it while fence %d of %s had it", m.Shown, q.step.Who, m.Fence, m.Session)
	case m.Session != q.step.Who:
		q.broke(Settlement, m.ID, "%s settled it while %s had it", q.step.Who, m.Session)
	case j.Fence != m.Fence || j.Session != m.Session:
		q.broke(Settlement, m.ID, "its token was that of %s with fence %d, but %s had claimed it last, with fence %d",
			m.Session, m.Fence, j.Session, j.Fence)
	}
}

// spent holds the attempts that a settlement left against what it may spend.
func (q *Queue) spent(m history.Move, j Job) {
	switch m.Verb {
	case "R", "D":
		if m.Spent != j.Spent+1 {
			q.broke(Attempts, m.ID, "a failure left %d attempts spent after %d", m.Spent, j.Spent)
		} else if m.Verb == "R" && j.Max > 0 && m.Spent >= j.Max {
			q.broke(Attempts, m.ID, "it is to be tried again when all %d attempts are spent", j.Max)
		}
	case "L":
		if m.Spent != j.Spent {
			q.broke(Graceful, m.ID, "a hand-back left %d attempts spent after %d", m.Spent, j.Spent)
		}
	case "C", "S", "U":
		if m.Spent != j.Spent {
			q.broke(Attempts, m.ID, "verb %s left %d attempts spent after %d", m.Verb, m.Spent, j.Spent)
		}
	}
	if j.Max > 0 && m.Spent > j.Max {
		q.broke(Attempts, m.ID, "%d attempts are spent, with %d allowed", m.Spent, j.Max)
	}
}

// stale: only what has not the current token may be refused.
func (q *Queue) stale(m history.Move) {
	if !m.Again {
		q.counts.totals.Stale++
	}
	if j := q.jobs[m.ID]; j.Place == Active && j.Fence == m.Fence && j.Session == m.Session && m.Session == q.step.Who {
		q.broke(Settlement, m.ID, "%s was refused though it had the job, with fence %d", m.Session, m.Fence)
	}
}

func (q *Queue) reclaim(m history.Move) {
	j := q.at(m, Active)
	t := &q.counts.totals
	if !q.senders[m.Session].gone && !q.blind {
		q.broke(Gone, m.ID, "it was taken from %s, which was not marked gone", m.Session)
	}
	if j.Session != m.Session || j.Fence != m.Fence {
		q.broke(Settlement, m.ID, "it was taken from %s with fence %d, but %s had it with fence %d", m.Session, m.Fence, j.Session, j.Fence)
	}
	switch m.To {
	case Cancelled:
		t.Cancelled++
		q.end(m, j)
		return
	case Nowhere:
		q.broke(Repair, m.ID, "it had no body when it was taken from %s", m.Session)
		j.Place = Nowhere
		q.put(m.ID, j)
		return
	}
	t.Stalled++
	j.Stalls++
	if m.Spent != j.Spent+1 {
		q.broke(Attempts, m.ID, "a stall left %d attempts spent after %d", m.Spent, j.Spent)
	}
	j.Spent = m.Spent
	q.stalled(m, j)
}

// stalled holds the place of a stalled job against what is due to it: dead when
// all is spent, the head of its class after the first stall, else a wait.
func (q *Queue) stalled(m history.Move, j Job) {
	want := Delayed
	switch {
	case j.Max > 0 && j.Spent >= j.Max:
		want = Dead
	case j.Stalls == 1:
		want = Waiting
	}
	if m.To != want && j.Max > 0 {
		q.broke(Place, m.ID, "its stall %d, attempt %d of %d, put it into %s", j.Stalls, j.Spent, j.Max, m.To)
	}
	switch m.To {
	case Dead:
		q.counts.totals.Dead++
		q.end(m, j)
	case Delayed:
		q.waits(m, j, Delayed, m.Due)
	default:
		q.waits(m, j, m.To, j.Due)
	}
}

func (q *Queue) revive(m history.Move) {
	q.counts.totals.Revived++
	j := q.at(m, Dead)
	if m.Spent != 0 {
		q.broke(Attempts, m.ID, "it was revived with %d attempts spent", m.Spent)
	}
	j.Spent, j.Stalls, j.Until, j.Ended = m.Spent, 0, 0, 0
	q.waits(m, j, Waiting, j.Due)
}

func (q *Queue) reschedule(m history.Move) {
	j := q.at(m, m.From)
	if m.From != Waiting && m.From != Delayed || m.To != Waiting && m.To != Delayed {
		q.broke(Place, m.ID, "it was rescheduled from %q to %q", m.From, m.To)
	}
	q.waits(m, j, m.To, m.Due)
}

// forget: the time of a job that ended is over, or dead had no room for it.
func (q *Queue) forget(m history.Move) {
	if m.What == history.Drop {
		q.counts.totals.Dropped++
	}
	j := q.at(m, m.From)
	switch {
	case !j.Over():
		q.broke(Place, m.ID, "it was forgotten while it was %s", j.Place)
	case m.What == history.Forget && j.Place == Dead:
		q.broke(Place, m.ID, "it was forgotten while it was dead")
	case m.What == history.Forget && j.Until > q.ms():
		q.broke(Final, m.ID, "it was forgotten %d ms before its time", j.Until-q.ms())
	}
	if m.What == history.Drop && m.To == Completed {
		j.Place, j.Until = Completed, m.Until
	} else {
		j = Job{}
	}
	q.put(m.ID, j)
}

// repair: a queue that keeps its promises needs none.
func (q *Queue) repair(m history.Move) {
	j := q.jobs[m.ID]
	if m.What == history.Stray {
		q.counts.totals.Strays++
		q.broke(Repair, m.ID, "it had a body and no place, and was put into waiting")
		j.Place = Waiting
	} else {
		if !q.counted(m) {
			q.counts.totals.Orphans++
		}
		q.broke(Repair, m.ID, "it was in %s without a body, and was taken out", m.From)
		j.Place = Nowhere
	}
	q.put(m.ID, j)
}

// counted reports that an earlier move of this step took the same orphan out of
// another place: it counts as one.
func (q *Queue) counted(m history.Move) bool {
	for i := range q.step.Moves {
		other := &q.step.Moves[i]
		if other.What == history.Orphan && other.ID == m.ID {
			return *other != m
		}
	}
	return false
}
