package life

import "github.com/kelpiehq/kelpie/chaos/history"

// sender holds the turn of a step against the last one of who sent it. A session
// that is gone has no turns any more: it may still settle, by its tokens alone.
func (q *Queue) sender() {
	who, turn := q.step.Who, q.step.Turn
	if who == "" || turn == 0 || q.name == Cluster {
		return
	}
	s := q.senders[who]
	if s.gone {
		return
	}
	if turn <= s.turn {
		q.broke(Turns, who, "%s obeyed turn %d after turn %d", q.step.Script, turn, s.turn)
		return
	}
	s.turn = turn
	q.putSender(who, s)
}

// sweep holds the epoch of a sweeper's step against the last one.
func (q *Queue) sweep() {
	epoch, last := q.step.Epoch, q.counts.epoch
	if epoch == 0 {
		return
	}
	if epoch < last || epoch == last && q.name == Cluster {
		q.broke(Epoch, "", "%s of epoch %d was obeyed after epoch %d", q.step.Script, epoch, last)
		return
	}
	q.counts.epoch = epoch
}

// part marks a session as one that may claim here no more.
func (q *Queue) part(m history.Move) {
	s := q.senders[m.ID]
	if s.gone && q.name == Cluster {
		q.broke(Condemned, m.ID, "%s of a session that was over already", m.What)
	}
	s.gone = true
	q.putSender(m.ID, s)
}
