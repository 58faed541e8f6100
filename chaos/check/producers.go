package check

import (
	"fmt"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

// exists is the Error of an enqueue that was refused since its id is known.
const exists = "exists"

// call is a call of a producer for one job.
type call struct {
	history.Op       // as it was invoked, with the id as far as it is known
	ended      int64 // T; never for one without an end
	phase      string
	err        string
}

// could reports that the call may have changed something.
func (c *call) could() bool { return c.phase == history.OK || c.phase == history.Unknown }

func (c *call) key() key { return key{c.Queue, c.ID} }

func (c *call) String() string { return fmt.Sprintf("%s/%d", c.Client, c.N) }

// calls are all calls, in the order of their invocation.
type calls struct {
	all  []*call
	byOp map[string]*call
	made map[key][]*call // enqueues that may have made a job of that id
	tied map[key][]*call // all others about it
}

func readCalls(h *history.History) *calls {
	c := &calls{byOp: map[string]*call{}, made: map[key][]*call{}, tied: map[key][]*call{}}
	for _, op := range h.Ops {
		name := fmt.Sprintf("%s/%d", op.Client, op.N)
		if op.Phase == history.Invoke {
			one := &call{Op: op, ended: never, phase: history.Unknown}
			c.byOp[name] = one
			c.all = append(c.all, one)
			continue
		}
		one := c.byOp[name]
		if one == nil {
			continue // its beginning was torn off: it is told by nobody
		}
		one.phase, one.ended, one.err = op.Phase, op.T, op.Error
		if op.ID != "" {
			one.ID = op.ID
		}
		if op.Due != 0 {
			one.Due = op.Due
		}
	}
	for _, one := range c.all {
		switch {
		case one.ID == "":
		case one.Verb == "enqueue" && one.could():
			c.made[one.key()] = append(c.made[one.key()], one)
		default:
			c.tied[one.key()] = append(c.tied[one.key()], one)
		}
	}
	return c
}

// producers holds what callers were told against the log.
func (j *judge) producers() {
	for _, c := range j.calls.all {
		if c.Verb == "enqueue" && c.phase == history.OK {
			j.checked(Lost, 1)
			j.kept(c)
		}
	}
	j.phantoms()
}

// kept holds one accepted job against the log.
func (j *judge) kept(c *call) {
	k := c.key()
	st := j.log.stored[k]
	if st == nil || st.times <= 0 {
		j.missing(c, k, st)
		return
	}
	if st.bare {
		j.lost(k)
		j.broke(Lost, "%s was accepted for %s, and later it had no body", k, c)
		return
	}
	now := j.log.space.Queue(c.Queue).Job(c.ID)
	if now.Over() || now.Place == life.Nowhere { // and forgotten by trim, or rightly so
		return
	}
	if j.h.Final != nil && j.h.Final.Settled {
		j.lost(k)
		j.broke(Lost, "%s was accepted for %s and never ended: in the log it is %s, and at rest nothing waits", k, c, now.Place)
	}
}

// missing: an accepted job that the surviving log does not have.
func (j *judge) missing(c *call, k key, st *stored) {
	if j.h.Final == nil {
		j.unsure(Lost, "the run never came to its end, so the log may not have been read to its own")
		return
	}
	b, at := j.faults.lossAfter(c.ended)
	if whole, emptied := j.log.whole[k.queue]; emptied && b == nil && st == nil && c.ended <= whole+clockSlop {
		return // accepted by a Redis that had just been emptied, and kept no log then
	}
	j.lost(k)
	if b == nil {
		j.broke(Lost, "%s was accepted for %s, but it was never stored, and Redis lost nothing after that", k, c)
		return
	}
	age := max(at-c.ended, 0)
	j.v.Measures[LossWindow] = max(j.v.Measures[LossWindow], float64(age)/1000)
	if window := j.h.Run.Loss.Window; age > window.Microseconds() {
		j.broke(Lost, "%s was accepted for %s %d ms before fault %d (%s) and is nowhere; this Redis may lose what is at most %v old",
			k, c, age/1000, b.n, b.kind, window)
	}
}

func (j *judge) lost(k key) {
	j.v.Measures[MeasureLost]++
	if len(j.v.Lost) < MostDetails {
		j.v.Lost = append(j.v.Lost, k.String())
	}
}

// phantoms looks for stored jobs that nobody enqueued. A job is somebody's by its
// id, or by the call that its payload names; those that never ran and have an
// unknown id must not be more than there are calls without an answer.
func (j *judge) phantoms() {
	open := map[string]int{} // by queue: calls whose outcome and id are unknown
	for _, c := range j.calls.all {
		if c.Verb == "enqueue" && c.phase == history.Unknown && c.ID == "" {
			open[c.Queue]++
		}
	}
	for _, c := range j.runs.maker {
		if c.phase == history.Unknown && c.ID == "" {
			open[c.Queue]-- // its job is known by its run
		}
	}
	for _, k := range sorted(j.log.stored) {
		st := j.log.stored[k]
		if !st.seen {
			continue
		}
		j.checked(Phantom, 1)
		if len(j.calls.made[k]) > 0 || j.runs.maker[k] != nil {
			continue
		}
		if open[k.queue]--; open[k.queue] < 0 {
			j.broke(Phantom, "%s was stored, but no call made it", k)
		}
	}
}
