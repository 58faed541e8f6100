package check

import (
	"cmp"
	"slices"
	"sort"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// What can change the free slots of a session.
const (
	claims = iota
	frees
	comes
	goes
	away // it is stopped or cut off
	back
)

// tick is a change of a session's slots, at a time of Redis's clock.
type tick struct {
	us      int64
	session string
	what    int
}

// crowd is a time, in µs of Redis's clock, in which no slot was free.
type crowd struct{ from, to int64 }

// room knows when slots were free. Slots of nodes that are cut off or stopped
// count for nothing, and a slot counts as taken until its job is settled.
type room struct {
	known  bool // the clocks could be compared
	crowds []crowd
}

// free reports that a slot was free at every moment between two times.
func (r *room) free(from, to int64) bool {
	i := sort.Search(len(r.crowds), func(i int) bool { return r.crowds[i].to > from })
	return r.known && (i == len(r.crowds) || r.crowds[i].from >= to)
}

// seat is what a session has at one moment.
type seat struct {
	held, away int
	live       bool
}

func (s seat) free(workers int) int {
	if !s.live || s.away > 0 {
		return 0
	}
	return max(0, workers-s.held)
}

// occupancy follows all sessions through the run.
func (j *judge) occupancy() *room {
	r := &room{}
	ticks := slices.Concat(j.log.ticks, j.lives())
	if _, _, r.known = j.h.Clock.Redis(0); !r.known || len(ticks) == 0 {
		return r
	}
	slices.SortStableFunc(ticks, func(a, b tick) int { return cmp.Compare(a.us, b.us) })
	seats, free, since := map[string]*seat{}, 0, ticks[0].us
	for _, t := range ticks {
		s := seats[t.session]
		if s == nil {
			s = &seat{}
			seats[t.session] = s
		}
		before := free
		free -= s.free(j.h.Run.Settings.Workers)
		s.change(t.what)
		free += s.free(j.h.Run.Settings.Workers)
		switch {
		case before > 0 && free == 0:
			since = t.us
		case before == 0 && free > 0 && t.us > since:
			r.crowds = append(r.crowds, crowd{since, t.us})
		}
	}
	if free == 0 {
		r.crowds = append(r.crowds, crowd{since, never})
	}
	return r
}

func (s *seat) change(what int) {
	switch what {
	case claims:
		s.held++
	case frees:
		s.held--
	case comes:
		s.live = true
	case goes:
		s.live = false
	case away:
		s.away++
	case back:
		s.away--
	}
}

// lives are the comings and goings of all sessions.
func (j *judge) lives() (ticks []tick) {
	at := func(t int64, session string, what int) {
		if us, _, known := j.h.Clock.Redis(t); known {
			ticks = append(ticks, tick{us, session, what})
		}
	}
	ofNode := map[string][]string{}
	for session, t := range j.log.born {
		at(t, session, comes)
		ofNode[nodeOf(session)] = append(ofNode[nodeOf(session)], session)
	}
	for session, us := range j.log.over {
		ticks = append(ticks, tick{us, session, goes})
	}
	for _, b := range j.faults.blows {
		for _, h := range b.hits {
			j.hitLives(b, h, ofNode[h.Target], at)
		}
	}
	return ticks
}

// hitLives tells what a hit means for the sessions of its node.
func (j *judge) hitLives(b *blow, h history.Strike, sessions []string, at func(int64, string, int)) {
	switch {
	case h.Signal == "KILL" || h.Signal == "TERM":
		if h.Session != "" {
			at(h.T, h.Session, goes)
		}
	case h.Signal == "STOP" || b.is(onWays...):
		for _, s := range sessions {
			at(h.T, s, away)
			if b.end != never {
				at(b.end+aftermath.Microseconds()/5, s, back)
			}
		}
	}
}
