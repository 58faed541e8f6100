package check

import (
	"math"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// bornAt returns when a session was first seen; the beginning of time if never.
func (j *judge) bornAt(session string) int64 {
	if t, known := j.log.born[session]; known {
		return t
	}
	return math.MinInt64
}

// afterwards reports that something happened behind the end of the run, when its
// nodes are stopped.
func (j *judge) afterwards(t int64) bool { return j.h.Final != nil && t > j.h.Final.T }

// condemned: each condemned session was rightly silent, and what was taken from
// a session was taken after it had been condemned or had said farewell.
func (j *judge) condemned() {
	j.v.Measures[Unexplained] = 0
	for _, c := range j.log.condemned {
		if j.afterwards(c.t) {
			continue
		}
		j.checked(Condemned, 1)
		if j.faults.struck(c.session, j.bornAt(c.session), c.t) == nil {
			j.v.Measures[Unexplained]++
			j.broke(Condemned, "%s was condemned, but no fault had killed, stopped or cut it off", c.session)
		}
	}
	for _, c := range j.log.gone {
		if j.afterwards(c.t) {
			continue
		}
		j.checked(Condemned, 1)
		if us, over := j.log.over[c.session]; !over || us > c.us {
			if j.h.Final != nil && !j.faults.lossBefore(c.t) { // else the log of sessions may be shorter
				j.broke(Condemned, "%s was marked gone in %s, but it was neither condemned nor had it said farewell", c.session, c.queue)
			}
		}
	}
}

// graceful: a node that was asked to stop, and met nothing else, handed back all
// that it held.
func (j *judge) graceful() {
	taken := map[string][]*attempt{}
	for _, a := range j.log.reclaims {
		if a.end != nil && a.end.spends {
			taken[a.session] = append(taken[a.session], a)
		}
	}
	j.v.Measures[SpentGraceful] += 0
	for _, b := range j.faults.blows {
		for _, h := range b.hits {
			if h.Signal != "TERM" || h.Session == "" {
				continue
			}
			j.checked(Graceful, 1)
			if b.ill || j.disturbed(b, h) {
				continue
			}
			for _, a := range taken[h.Session] {
				j.v.Measures[SpentGraceful]++
				j.broke(Graceful, "%s was stopped by SIGTERM (fault %d), and %s lost an attempt", h.Session, b.n, a.key)
			}
		}
	}
}

// disturbed reports that something else happened to a node while it drained, or
// to Redis.
func (j *judge) disturbed(b *blow, term history.Strike) bool {
	to := term.T + j.h.Run.Settings.Drain.Microseconds() + aftermath.Microseconds()
	if j.faults.during(term.T, to, harmsRedis) != nil {
		return true
	}
	for _, other := range j.faults.blows {
		for _, h := range other.hits {
			same := h.Session == term.Session || h.Target == term.Target && other != b
			until := max(other.end, h.T)
			if h.Signal == "KILL" {
				until = h.T
			}
			if same && h.T <= to && (until == never || until+aftermath.Microseconds() >= term.T) &&
				h.Signal != "TERM" && j.faults.silences(other, h) {
				return true
			}
		}
	}
	return false
}

// full: while Redis was full, what ended was settled.
func (j *judge) full() {
	for _, b := range j.faults.blows {
		if b.kind != "redis-full" {
			continue
		}
		from, to := b.hits[0].T, min(b.heal, b.end)
		if to == never || j.faults.during(from, to, func(o *blow) bool { return o != b && harmsRedis(o) }) != nil {
			continue
		}
		j.checked(Full, 1)
		if ended, stuck := j.unsettled(from, to); 10*stuck > ended {
			j.broke(Full, "Redis was full for %d ms (fault %d): of %d handlers that ended, %d could not be settled until it had memory again",
				(to-from)/1000, b.n, ended, stuck)
		}
	}
}

// unsettled counts the handlers that ended between two times, early enough that
// they had to be settled as well, and those of them that were not. A few may be
// late on a busy machine.
func (j *judge) unsettled(from, to int64) (ended, stuck int) {
	for _, r := range j.runs.all {
		// As long before the end as a settlement needs at most.
		if r.ended < from+clockSlop || r.ended > to-2*aftermath.Microseconds()/5 || r.outcome == "cut" || r.claim == nil ||
			j.faults.struck(r.claim.session, j.bornAt(r.claim.session), to) != nil {
			continue
		}
		ended++
		if e := r.claim.end; e == nil || j.at(history.Step{US: e.us, T: never}) > to {
			stuck++
		}
	}
	return ended, stuck
}

// settledWithin counts the settlements between two times.
func (j *judge) settledWithin(from, to int64) (n int) {
	for _, us := range j.log.timeline {
		if t, _, ok := j.h.Clock.Local(us); ok && t > from && t < to {
			n++
		}
	}
	return n
}
