package queue

import (
	"maps"
	"slices"
	"strings"
)

// due lists what is due at ms, at most 100. The class is part of the score: the
// net compares with it, promote does not.
func (m *model) due(ms int64, whole bool) (ids []string) {
	for _, id := range m.sorted(Delayed) {
		j := m.jobs[id]
		if (j.score < ms || j.score == ms && (whole || j.class == 0)) && len(ids) < 100 {
			ids = append(ids, id)
		}
	}
	return ids
}

// fenced says whether an older epoch calls, and takes note of a new one.
func (m *model) fenced(epoch int64) bool {
	if epoch < m.epoch {
		return true
	}
	m.epoch = epoch
	return false
}

func (m *model) promote(epoch int64) int {
	if m.fenced(epoch) {
		return -1
	}
	due := m.due(m.ms(), true)
	for _, id := range due {
		m.toWaiting(m.jobs[id])
	}
	m.count["promoted"] += int64(len(due))
	return len(due)
}

func (m *model) reclaim(epoch int64, session string, ids []string) int {
	if m.fenced(epoch) {
		return -1
	}
	m.part(session)
	moved := 0
	for _, id := range ids {
		j := m.jobs[id]
		if j == nil || j.place != Active || !strings.HasSuffix(j.token, " "+session) {
			continue
		}
		moved++
		if j.marked {
			m.cancel(id)
			continue
		}
		m.count["stalled"]++
		j.tried, j.spent, j.stalls, j.count = true, j.spent+1, j.stalls+1, j.count+1
		switch {
		case j.spent >= j.max:
			m.count["dead"]++
			j.to(Dead, m.ms())
		case j.stalls == 1:
			m.toHead(j)
		default:
			j.to(Delayed, m.ms()+int64(j.spent*j.spent)*1000)
		}
	}
	return moved
}

func (m *model) trim(epoch int64) int {
	if m.fenced(epoch) {
		return -1
	}
	n := 0
	maps.DeleteFunc(m.senders, func(_ string, s modelSender) bool { return s.ms < m.ms()-1_200_000 })
	for session, since := range m.gone {
		if since < m.ms()-3_600_000 {
			delete(m.holders, session)
			delete(m.gone, session)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		if j := m.jobs[id]; (j.place == Completed || j.place == Cancelled) && j.score <= m.ms() {
			delete(m.jobs, id)
			n++
		}
	}
	return n
}

// raise: the caller holds the lock.
func (m *model) raise(seen int64) int64 {
	m.raised = max(m.us, m.raised+1, seen+1)
	return m.raised
}

func (m *model) beat(session string, bye bool) string {
	if m.doomed[session] {
		return "LOST"
	}
	m.beats[session] = m.ms()
	if bye {
		delete(m.beats, session)
		m.doomed[session] = true
	}
	return "OK"
}

func (m *model) condemn(session string, beat int64) string {
	switch was, ok := m.beats[session]; {
	case !ok:
		return "ABSENT"
	case was != beat:
		return "ALIVE"
	}
	delete(m.beats, session)
	m.doomed[session] = true
	return "DONE"
}
