package check

import (
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

// key names a job of the whole space.
type key struct{ queue, id string }

func (k key) String() string { return k.queue + "/" + k.id }

// attempt is a claim in the log, and how it ended.
type attempt struct {
	key
	n       int // in the order of the log, the lost branches included
	fence   int64
	session string
	us      int64
	spent   int     // before it
	due     int64   // ms, where it was promoted for this claim
	lost    bool    // Redis lost the claim
	end     *ending // as far as Redis kept it
	undone  *ending // one that Redis lost
}

// ending is how an attempt ended: a settlement, or a reclaim (Verb is "").
type ending struct {
	verb, to, session string
	us                int64
	spends            bool
}

// stored is what the log has of a job's enqueue.
type stored struct {
	us    int64 // of the last one
	times int   // in the surviving log
	seen  bool  // also in one that was lost
	bare  bool  // its body was gone when a script looked
}

// token is that of a claim: of a job, with fence and session. Where Redis was set
// back, a fence alone, and even a whole token, can have been given out twice.
type token struct {
	key
	fence   int64
	session string
}

// ticket finds the claims that a run of a handler can belong to: a ledger has the
// node, not the session.
type ticket struct {
	key
	fence int64
	node  string
}

// replay is what the log tells.
type replay struct {
	space     *life.Space
	holes     []string
	attempts  []*attempt
	byToken   map[token]*attempt    // the last one with it
	byTicket  map[ticket][]*attempt // in the order of the log
	byJob     map[key][]*attempt
	stored    map[key]*stored
	changes   map[string]map[key]int // verb -> job -> moves in the surviving log
	born      map[string]int64       // session -> T, first seen
	over      map[string]int64       // session -> US, condemned or farewell
	condemned []condemnation
	gone      []condemnation // marks by the sweeper
	reclaims  []*attempt
	ticks     []tick
	last      map[string]*trail
	backs     map[string]int
	whole     map[string]int64       // queue -> T, from when on its log is whole again after Redis was emptied
	promoted  map[key]int64          // ms, due
	n         map[string]int         // moves by What, and settlements by "settle "+verb, in all branches
	raised    map[string]bool        // sessions that became sweeper
	epochs    map[int64]int64        // epoch -> US, raised
	obeyed    map[int64]history.Step // epoch -> the first step of a queue with it
	longest   float64                // ms that a due job lay unpromoted while Redis was up
	first, to int64                  // US of the first store and of the last final settlement
	ends      int                    // final settlements
	timeline  []int64                // US of every settlement
}

// What the judge counts beside the kinds of moves: a stale settlement is a late one,
// or one that had counted already and was sent again.
const (
	refused  = "stale, late"
	repeated = "stale, repeated"
)

// condemnation is a session that was condemned, or marked gone in a queue.
type condemnation struct {
	session string
	us, t   int64
	queue   string
}

// trail is what a queue's last steps did, so that it can be taken back.
type trail struct{ records []record }

type record struct {
	index   int64
	attempt *attempt
	end     *ending
	key     key
	verb    string // of a store, revive or reschedule
}

// at returns when a step happened, by this machine's clock. Where no clock is
// known it is when the step was read, which is later.
func (j *judge) at(s history.Step) int64 {
	if t, _, ok := j.h.Clock.Local(s.US); ok {
		return t
	}
	return s.T
}

func (j *judge) replay() *replay {
	r := &replay{
		space: life.New(j.h.Run.Settings.Workers), byToken: map[token]*attempt{}, byTicket: map[ticket][]*attempt{}, byJob: map[key][]*attempt{},
		stored: map[key]*stored{}, born: map[string]int64{}, over: map[string]int64{},
		last: map[string]*trail{}, backs: map[string]int{}, whole: map[string]int64{}, promoted: map[key]int64{},
		n: map[string]int{}, raised: map[string]bool{}, epochs: map[int64]int64{}, obeyed: map[int64]history.Step{},
		changes: map[string]map[key]int{history.Store: {}, history.Revive: {}, history.Reschedule: {}},
	}
	j.log = r
	if len(j.h.Steps) == 0 && len(j.h.Ops) > 0 {
		r.holes = append(r.holes, "there is none at all")
	}
	for _, s := range j.h.Steps {
		for _, w := range r.space.Apply(s) {
			j.wrong(w, s)
		}
		if s.Back {
			r.takeBack(s, j.h.Clock)
			continue
		}
		t := j.at(s)
		if _, known := r.whole[s.Queue]; !known && r.space.Queue(s.Queue).Blind() {
			r.whole[s.Queue] = s.T
		}
		for _, m := range s.Moves {
			r.take(s, m, t)
		}
		j.sweeps(s, t)
	}
	j.raisedEpochs()
	j.count()
	return r
}

// wrong notes what the model says about a step.
func (j *judge) wrong(w life.Violation, s history.Step) {
	switch {
	case w.Rule == life.Hole:
		j.log.holes = append(j.log.holes, w.String())
	case w.Rule == life.Repair && j.faults.lossBefore(j.at(s)):
	case w.Rule == life.Repair:
		j.broke(Place, "%s", w)
	default:
		j.broke(w.Rule, "%s", w)
	}
}

// take keeps of a move what the judge needs.
func (r *replay) take(s history.Step, m history.Move, t int64) {
	k := key{s.Queue, m.ID}
	r.n[m.What]++
	switch m.What {
	case history.Join:
		if _, known := r.born[m.ID]; !known {
			r.born[m.ID] = t
		}
	case history.Store:
		r.store(s, k)
	case history.Claim:
		r.claim(s, m, k)
	case history.Settle, history.Reclaim:
		r.ended(s, m, k)
	case history.Promote:
		r.promoted[k] = m.Due
	case history.Revive, history.Reschedule:
		delete(r.promoted, k)
		r.changes[m.What][k]++
		r.note(s, record{key: k, verb: m.What})
	case history.Stale:
		if a := r.byToken[token{k, m.Fence, m.Session}]; m.Again && a != nil && a.end != nil && a.end.verb != "" {
			r.n[repeated]++ // the same settlement had counted, and its answer was lost
		} else {
			r.n[refused]++
		}
	case history.Orphan:
		r.of(k).bare = true
	case history.Bye, history.Condemn, history.Gone, history.Raise:
		r.session(s, m, t)
	}
}

func (r *replay) of(k key) *stored {
	st := r.stored[k]
	if st == nil {
		st = &stored{}
		r.stored[k] = st
	}
	return st
}

func (r *replay) note(s history.Step, rec record) {
	tr := r.last[s.Queue]
	if tr == nil {
		tr = &trail{}
		r.last[s.Queue] = tr
	}
	rec.index = s.Index
	tr.records = append(tr.records, rec)
}

func (r *replay) store(s history.Step, k key) {
	st := r.of(k)
	st.us, st.seen, st.bare = s.US, true, false
	st.times++
	if r.first == 0 || s.US < r.first {
		r.first = s.US
	}
	r.changes[history.Store][k]++
	r.note(s, record{key: k, verb: history.Store})
}

func (r *replay) claim(s history.Step, m history.Move, k key) {
	a := &attempt{key: k, n: len(r.attempts), fence: m.Fence, session: m.Session, us: s.US, spent: m.Spent, due: r.promoted[k]}
	delete(r.promoted, k)
	r.attempts = append(r.attempts, a)
	r.byToken[token{k, m.Fence, m.Session}] = a
	ticket := ticket{k, m.Fence, nodeOf(m.Session)}
	r.byTicket[ticket] = append(r.byTicket[ticket], a)
	r.byJob[k] = append(r.byJob[k], a)
	r.ticks = append(r.ticks, tick{s.US, a.session, claims})
	r.note(s, record{attempt: a, key: k})
}

func (r *replay) ended(s history.Step, m history.Move, k key) {
	e := &ending{verb: m.Verb, to: m.To, session: m.Session, us: s.US}
	e.spends = m.What == history.Reclaim && (m.To == life.Waiting || m.To == life.Delayed || m.To == life.Dead)
	if m.What == history.Settle {
		r.n["settle "+m.Verb]++
		r.timeline = append(r.timeline, s.US)
	}
	if m.What == history.Reclaim && m.To == life.Nowhere {
		r.of(k).bare = true
	}
	if m.To != life.Waiting && m.To != life.Delayed {
		r.ends++
		r.to = max(r.to, s.US)
	}
	if m.To == life.Dead {
		r.n["dead"]++
	}
	r.ticks = append(r.ticks, tick{s.US, m.Session, frees})
	a := r.byToken[token{k, m.Fence, m.Session}]
	if a == nil {
		return
	}
	a.end = e
	if m.What == history.Reclaim {
		r.reclaims = append(r.reclaims, a)
	}
	r.note(s, record{attempt: a, end: e, key: k})
}

func (r *replay) session(s history.Step, m history.Move, t int64) {
	c := condemnation{m.ID, s.US, t, s.Queue}
	switch {
	case m.What == history.Raise:
		r.raised[m.ID] = true
		r.epochs[s.Epoch] = s.US
	case m.What == history.Gone:
		r.gone = append(r.gone, c)
	case s.Queue == life.Cluster:
		r.over[m.ID] = s.US
		if m.What == history.Condemn {
			r.condemned = append(r.condemned, c)
		}
	}
}

// takeBack does what Redis did: it forgets the last steps of a queue.
func (r *replay) takeBack(s history.Step, clock *history.Clock) {
	r.backs[s.Queue]++
	delete(r.whole, s.Queue)
	tr := r.last[s.Queue]
	if tr == nil {
		return
	}
	us, _, known := clock.Redis(s.T)
	n := len(tr.records)
	for ; n > 0 && tr.records[n-1].index >= s.Index; n-- {
		switch rec := tr.records[n-1]; {
		case rec.verb != "":
			r.changes[rec.verb][rec.key]--
			if rec.verb == history.Store {
				r.of(rec.key).times--
			}
		case rec.end != nil:
			rec.attempt.undone = rec.end
			if rec.attempt.end == rec.end {
				rec.attempt.end = nil
			}
			if known && !rec.attempt.lost {
				r.ticks = append(r.ticks, tick{us, rec.attempt.session, claims})
			}
		default:
			rec.attempt.lost = true
			if known && rec.attempt.end == nil {
				r.ticks = append(r.ticks, tick{us, rec.attempt.session, frees})
			}
		}
	}
	tr.records = tr.records[:n]
}
