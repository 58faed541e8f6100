package check

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

// What a client can know of a job: one bit each, so that a state of the search is
// the set of what may be true.
const (
	absent  = 1 << iota // never stored
	living              // waiting, delayed or active
	dead                //
	ended               // completed or cancelled, and known
	unknown             // it ended and was forgotten
)

// event is a call about one job and what was said, or something seen of it.
type event struct {
	verb  string // enqueue, reschedule, revive, start; or a place at rest
	phase string
	err   string
	quick bool // its id may be forgotten as soon as it ends
}

// silent adds what may have happened to a job without any client.
func silent(may int, quick bool) int {
	if may&living != 0 {
		may |= dead | ended
	}
	if quick && may&ended != 0 {
		may |= unknown
	}
	return may
}

// step returns what may be true after an event; nothing if it cannot be.
func step(may int, e event) int {
	may = silent(may, e.quick)
	after := may
	switch {
	case e.verb == "enqueue" && e.phase == history.Fail && e.err == exists:
		after = may & (living | dead | ended)
	case e.phase == history.Fail:
	case e.verb == "enqueue" && may&(absent|unknown) != 0:
		after = living
	case e.verb == "enqueue" && e.phase == history.OK:
		after = 0
	case e.verb == "reschedule" && e.phase == history.OK:
		after = may & living
	case e.verb == "revive" && may&dead != 0:
		after = living
	case e.verb == "revive" && e.phase == history.OK:
		after = 0
	case e.verb == "start":
		after = may &^ absent
	case e.verb == life.Dead:
		after = may & dead
	case e.verb == life.Completed, e.verb == life.Cancelled:
		after = may & ended
	}
	if e.phase == history.Unknown {
		after |= may
	}
	return after
}

var jobModel = porcupine.Model{
	Init: func() any { return absent },
	Step: func(state, input, _ any) (bool, any) {
		after := step(state.(int), input.(event))
		return after != 0, after
	},
}

// linearizable searches, for each job, one order of what its callers were told,
// of its first run and of where it came to rest. Jobs that lived when Redis lost
// writes are left out: there is none for them.
func (j *judge) linearizable() {
	all := j.clientHistories()
	for _, k := range sorted(all) {
		ops := all[k]
		if lost, _ := j.faults.lossAfter(ops[0].Call); lost != nil {
			continue
		}
		j.checked(Linearizing, 1)
		switch porcupine.CheckOperationsTimeout(jobModel, ops, time.Second) {
		case porcupine.Illegal:
			j.broke(Linearizing, "no order of events fits what was told about %s: %s", k, told(ops))
		case porcupine.Unknown:
			j.unsure(Linearizing, fmt.Sprintf("the search for an order of events of %s took too long", k))
		}
	}
	j.counted()
}

func told(ops []porcupine.Operation) (text string) {
	for _, op := range ops {
		e := op.Input.(event)
		text += fmt.Sprintf("%s %s %s; ", e.verb, e.phase, e.err)
	}
	return text
}

// clientHistories collects, by job, all that was seen of it from outside. The
// first operation of each is the earliest.
func (j *judge) clientHistories() map[key][]porcupine.Operation {
	all := map[key][]porcupine.Operation{}
	for _, c := range j.calls.all {
		if c.ID == "" || len(j.calls.made[c.key()]) == 0 && c.Verb != "enqueue" {
			continue // whose job it was is not known
		}
		end := c.ended
		if c.phase == history.Unknown {
			end = never // it may arrive late
		}
		e := event{verb: c.Verb, phase: c.phase, err: c.err, quick: j.forgets(c)}
		all[c.key()] = append(all[c.key()], porcupine.Operation{Input: e, Call: c.T, Return: end})
	}
	for k, list := range j.runs.byJob {
		if ops := all[k]; ops != nil && len(j.calls.made[k]) > 0 {
			e := event{verb: "start", quick: ops[0].Input.(event).quick}
			all[k] = append(ops, porcupine.Operation{Input: e, Call: list[0].T, Return: list[0].T})
		}
	}
	f := j.h.Final
	if f == nil || !f.Settled {
		return all
	}
	for name, q := range f.Queues {
		for _, place := range []string{life.Dead, life.Completed, life.Cancelled} {
			for _, id := range q.Places[place] {
				if ops := all[key{name, id}]; ops != nil && len(j.calls.made[key{name, id}]) > 0 {
					e := event{verb: place, quick: ops[0].Input.(event).quick}
					all[key{name, id}] = append(ops, porcupine.Operation{Input: e, Call: math.MaxInt64 - 1, Return: math.MaxInt64 - 1})
				}
			}
		}
	}
	return all
}

// memory is how long an id that a caller chose stays known after the end.
const memory = 10 * time.Minute

// forgets reports that a job's id may be forgotten within the run: at once where
// nobody chose it.
func (j *judge) forgets(c *call) bool {
	if !c.Chosen && c.Verb == "enqueue" {
		return true
	}
	made := j.calls.made[c.key()]
	if len(made) == 0 || !made[0].Chosen {
		return true
	}
	return j.h.Final == nil || j.h.Final.T-made[0].T > memory.Microseconds()
}

// counted holds how often something succeeded for a job against how often the
// log says so.
func (j *judge) counted() {
	type bounds struct{ least, most int }
	verbs := map[string]string{"enqueue": history.Store, "reschedule": history.Reschedule, "revive": history.Revive}
	all := map[string]map[key]bounds{history.Store: {}, history.Reschedule: {}, history.Revive: {}}
	for _, c := range j.calls.all {
		what := verbs[c.Verb]
		if c.ID == "" || what == "" || !c.could() {
			continue
		}
		b := all[what][c.key()]
		if b.most++; c.phase == history.OK {
			b.least++
		}
		if lost, _ := j.faults.lossAfter(c.T); lost != nil || len(j.log.whole) > 0 {
			b.least, b.most = 0, math.MaxInt32
		}
		all[what][c.key()] = b
	}
	for _, what := range []string{history.Store, history.Reschedule, history.Revive} {
		byJob, moves := all[what], j.log.changes[what]
		for _, k := range sorted(moves) {
			n := moves[k]
			if b, told := byJob[k]; n > b.most && (told || what != history.Store) && !j.faults.lossBefore(never-1) {
				j.broke(Linearizing, "%s: %d times %s in the log, but at most %d calls can have done that", k, n, what, b.most)
			}
		}
		for _, k := range sorted(byJob) {
			b := byJob[k]
			if n := moves[k]; n < b.least && what != history.Store { // which is rule lost
				j.broke(Linearizing, "%s: %d times %s in the log, but %d calls were told that it was done", k, n, what, b.least)
			}
		}
	}
}
