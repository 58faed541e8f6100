package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// model is what a queue should be, without Redis: the state machine test runs
// every action on both and compares all keys after each.
type model struct {
	us      int64 // Redis's clock
	jobs    map[string]*modelJob
	holders map[string]int64 // last turn; -1 gone
	gone    map[string]int64 // since when (ms)
	senders map[string]modelSender
	beats   map[string]int64 // of the sessions
	doomed  map[string]bool

	raised                       int64 // last epoch of the space
	epoch, fence, sequence, head int64
	count                        map[string]int64
}

type modelSender struct {
	turn, ms int64
	outcomes string
}

type modelJob struct {
	place                          State
	class, max                     int
	chosen                         bool
	retention                      int64 // ms
	header                         bool  // the payload is gone
	rank                           int64 // in waiting, within its class
	score                          int64 // ms: due, end or until
	token                          string
	marked                         bool // shall end as cancelled
	tried                          bool
	spent, stalls, unserved, count int
}

func newModel(us int64) *model {
	return &model{us: us, jobs: map[string]*modelJob{}, holders: map[string]int64{}, gone: map[string]int64{},
		senders: map[string]modelSender{}, beats: map[string]int64{}, doomed: map[string]bool{}, count: map[string]int64{}}
}

func (m *model) ms() int64 { return m.us / 1000 }

// sorted returns the ids of a place in their order.
func (m *model) sorted(place State) []string {
	var list []string
	for id, j := range m.jobs {
		if j.place == place {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		x, y := m.jobs[a], m.jobs[b]
		if place == Waiting {
			return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.rank, y.rank))
		}
		if place == Delayed {
			return cmp.Or(cmp.Compare(x.score, y.score), cmp.Compare(x.class, y.class), strings.Compare(a, b))
		}
		return cmp.Or(cmp.Compare(x.score, y.score), strings.Compare(a, b))
	})
	return list
}

func (m *model) toWaiting(j *modelJob) {
	m.sequence++
	j.place, j.rank, j.token = Waiting, m.sequence, ""
}
func (m *model) toHead(j *modelJob) { m.head++; j.place, j.rank, j.token = Waiting, -m.head, "" }

func (j *modelJob) to(place State, score int64) { j.place, j.score, j.token = place, score, "" }

// end takes a job to completed or cancelled, or away.
func (m *model) end(id string, place State) {
	j := m.jobs[id]
	switch {
	case j.retention > 0 && j.chosen:
		j.to(place, m.ms()+max(j.retention, idMemory.Milliseconds()))
	case j.retention > 0:
		j.to(place, m.ms()+j.retention)
	case j.chosen:
		j.to(place, m.ms()+idMemory.Milliseconds())
		j.header, j.tried = true, j.tried && place == Cancelled
	default:
		delete(m.jobs, id)
	}
}

// modelItem is a job to enqueue.
type modelItem struct {
	id               string
	class, max       int
	chosen           bool
	delay, retention int64
}

// turnOf says whether a sender's turn is new; else what it gets.
func (m *model) turnOf(sender string, turn, age int64) (word, outcomes string, fresh bool) {
	last := m.senders[sender]
	switch {
	case m.ms()-age > 300_000:
		return "OLD", "", false
	case turn == last.turn:
		return "OK", last.outcomes, false
	case turn < last.turn:
		return "STALE", "", false
	}
	return "OK", "", true
}

func (m *model) enqueue(sender string, turn, age int64, items []modelItem) (string, string) {
	word, out, fresh := m.turnOf(sender, turn, age)
	if !fresh {
		return word, out
	}
	for _, i := range items {
		if m.jobs[i.id] != nil {
			out += "E"
			continue
		}
		out += "O"
		j := &modelJob{class: i.class, max: i.max, chosen: i.chosen, retention: i.retention}
		if m.jobs[i.id] = j; i.delay > 0 {
			j.to(Delayed, m.ms()+i.delay)
		} else {
			m.toWaiting(j)
		}
		m.count["enqueued"]++
	}
	m.senders[sender] = modelSender{turn, m.ms(), out}
	return word, out
}

func (m *model) reschedule(sender string, turn, age int64, id string, delay int64) (string, string) {
	word, out, fresh := m.turnOf(sender, turn, age)
	if !fresh {
		return word, out
	}
	switch j := m.jobs[id]; {
	case j == nil:
		out = "N"
	case j.place == Active:
		out = "A"
	case j.place != Waiting && j.place != Delayed:
		out = "E"
	case delay > 0:
		j.to(Delayed, m.ms()+delay)
		out = fmt.Sprint("O", j.score)
	default:
		m.toWaiting(j)
		out = fmt.Sprint("O", m.ms())
	}
	m.senders[sender] = modelSender{turn, m.ms(), out}
	return word, out
}

func (m *model) revive(sender string, turn, age int64, ids []string) (string, string) {
	word, out, fresh := m.turnOf(sender, turn, age)
	if !fresh {
		return word, out
	}
	for _, id := range ids {
		j := m.jobs[id]
		if j == nil || j.place != Dead {
			out += "N"
			continue
		}
		out += "O"
		m.toWaiting(j)
		j.spent, j.stalls, j.unserved = 0, 0, 0
		m.count["revived"]++
	}
	m.senders[sender] = modelSender{turn, m.ms(), out}
	return word, out
}

// modelEnd is a settlement.
type modelEnd struct {
	id, token string
	verb      Verb
	delay     int64
	again     bool
	tries     *tries // the new value, nil leaves it
}

// exchange returns the word, the verdicts and "id token" of each claim.
func (m *model) exchange(session string, turn int64, want int, bye, risky bool, ends []modelEnd) (word, verdicts string, claims []string) {
	last := m.holders[session]
	if last >= 0 && turn <= last {
		return "STALE", "", nil
	}
	late := m.due(m.ms()-100, false)
	word = "OK"
	seen := map[string]bool{}
	for _, e := range ends {
		j := m.jobs[e.id]
		if j == nil || j.place != Active || j.token != e.token || seen[e.id] {
			verdicts += "S"
			if !seen[e.id] && !e.again {
				m.count["stale"]++
			}
			continue
		}
		verdicts, seen[e.id] = verdicts+"O", true
		m.settle(e, j)
	}
	if last < 0 {
		word, want = "GONE", 0
	} else if m.holders[session] = turn; bye {
		m.part(session)
		want = 0
	}
	for _, id := range late {
		m.toWaiting(m.jobs[id])
	}
	m.count["promoted"] += int64(len(late))
	return word, verdicts, m.claim(session, want, risky)
}

func (m *model) part(session string) {
	if m.holders[session] >= 0 {
		m.holders[session], m.gone[session] = -1, m.ms()
	}
}

func (m *model) cancel(id string) {
	m.count["cancelled"]++
	m.jobs[id].marked = false
	m.end(id, Cancelled)
}

func (m *model) settle(e modelEnd, j *modelJob) {
	if e.tries != nil {
		j.tried = true
		j.spent, j.stalls, j.unserved, j.count = e.tries.spent, e.tries.stalls, e.tries.unserved, e.tries.count
	}
	if j.marked {
		m.cancel(e.id)
		return
	}
	switch e.verb {
	case VerbComplete:
		m.count["completed"]++
		m.end(e.id, Completed)
	case VerbRetry:
		m.count["failed"]++
		m.count["retried"]++
		j.to(Delayed, m.ms()+e.delay)
	case VerbDead:
		m.count["failed"]++
		m.count["dead"]++
		j.to(Dead, m.ms())
	case VerbSnooze, VerbUnserved:
		j.to(Delayed, m.ms()+e.delay)
	case VerbRelease:
		m.toHead(j)
	}
}

func (m *model) claim(session string, want int, risky bool) (claims []string) {
	if want <= 0 {
		return nil
	}
	list := m.sorted(Waiting)
	fence := max(m.fence, m.us-1)
	for _, id := range list[:min(want, len(list))] {
		j := m.jobs[id]
		switch {
		case j.tried && j.spent >= j.max:
			m.count["dead"]++
			j.to(Dead, m.ms())
			continue
		case j.stalls >= 2 && !risky:
			j.to(Delayed, m.ms()+1000)
			continue
		case j.stalls >= 2:
			risky = false
		}
		fence++
		m.count["claimed"]++
		m.fence = fence
		j.place, j.token = Active, fmt.Sprint(fence, " ", session)
		claims = append(claims, id+" "+j.token)
	}
	return claims
}
