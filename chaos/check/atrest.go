package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

// atRest holds what the queues had in the end against themselves and the log. A
// run that did not settle was read while it moved: then nothing is held.
func (j *judge) atRest() {
	f := j.h.Final
	if f == nil || !f.Settled {
		j.unsure(Place, "the queues were never read at rest")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.Queues)) {
		q := f.Queues[name]
		where := j.places(name, q)
		j.bodies(name, q, where)
		if model := j.log.space.Queue(name); model != nil && !model.Blind() {
			j.asLogged(name, q, where, model)
		}
	}
}

// places finds where each id is, and those that are in two places.
func (j *judge) places(name string, q history.QueueFinal) map[string]string {
	where := map[string]string{}
	for _, place := range slices.Sorted(maps.Keys(q.Places)) {
		for _, id := range q.Places[place] {
			j.checked(Place, 1)
			if other, twice := where[id]; twice {
				j.broke(Place, "%s/%s is in %s and in %s", name, id, other, place)
			}
			where[id] = place
		}
	}
	return where
}

func (j *judge) bodies(name string, q history.QueueFinal, where map[string]string) {
	for _, id := range slices.Sorted(maps.Keys(where)) {
		if _, has := q.Bodies[id]; !has {
			j.broke(Place, "%s/%s is in %s without a body", name, id, where[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(q.Bodies)) {
		if where[id] == "" {
			j.broke(Place, "%s/%s has a body and is in no place", name, id)
		}
	}
}

// asLogged holds what a queue has against what its log has left there.
func (j *judge) asLogged(name string, q history.QueueFinal, where map[string]string, model *life.Queue) {
	us, _, known := j.h.Clock.Redis(j.h.Final.T)
	for _, id := range slices.Sorted(maps.Keys(where)) {
		job := model.Job(id)
		if want := job.Kept(); want != where[id] && want != life.Nowhere {
			j.broke(Place, "%s/%s is in %s, but by the log it is %s", name, id, where[id], want)
		} else if want == life.Nowhere && job.Over() {
			j.broke(Place, "%s/%s is in %s, but by the log it was forgotten at its end", name, id, where[id])
		} else if want == life.Nowhere && j.log.stored[key{name, id}] == nil {
			j.broke(Phantom, "%s/%s is in %s, and the log has no such job", name, id, where[id])
		}
		if tries, kept := q.Tries[id]; kept && job.Place == where[id] && spentOf(tries) != job.Spent {
			j.broke(Attempts, "%s/%s has %d attempts spent, by the log %d", name, id, spentOf(tries), job.Spent)
		}
	}
	for id, job := range model.Jobs() {
		want := job.Kept()
		over := want == life.Completed || want == life.Cancelled
		if want == life.Nowhere || where[id] != "" || over && (!known || job.Until <= us/1000+clockSlop/1000) {
			continue
		}
		j.broke(Place, "%s/%s is nowhere, but by the log it is %s", name, id, want)
	}
}

// spentOf reads the first number of a value of tries.
func spentOf(tries string) int {
	first, _, _ := strings.Cut(tries, " ")
	n, _ := strconv.Atoi(first) // what cannot be read counts as nothing, as in a queue
	return n
}

// counters holds the counters of each queue against its log.
func (j *judge) counters() {
	f := j.h.Final
	if f == nil || !f.Settled {
		j.unsure(Counters, "the counters were never read at rest")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.Queues)) {
		model := j.log.space.Queue(name)
		if model == nil || model.Blind() {
			continue
		}
		want := model.Totals().Map()
		for _, counter := range slices.Sorted(maps.Keys(want)) {
			have, kept := f.Queues[name].Totals[counter]
			if !kept && want[counter] == 0 {
				continue
			}
			j.checked(Counters, 1)
			if have != want[counter] {
				j.broke(Counters, "queue %s counts %d %s, its log %d", name, have, counter, want[counter])
			}
		}
	}
}

// settled: everything came to rest in time. Where the set-up was broken in the
// end, nothing could.
func (j *judge) settled() {
	f := j.h.Final
	if f == nil {
		j.unsure(Settled, "the run never came to its end")
		return
	}
	j.checked(Settled, 1)
	bound := j.h.Run.Settings.Settle
	j.v.Measures[SettleTime] = float64(f.Waited) / 1000
	if f.Settled && (bound <= 0 || f.Waited <= bound.Microseconds()) {
		return
	}
	if health := j.lastHealth(); health != nil && !health.OK {
		j.unsure(Settled, "the set-up was broken in the end: "+health.Note)
		return
	}
	if f.Settled {
		j.broke(Settled, "all came to rest %d ms after the last fault, and %v are allowed", f.Waited/1000, bound)
		return
	}
	var left []string
	for _, name := range slices.Sorted(maps.Keys(f.Queues)) {
		for _, place := range []string{life.Waiting, life.Delayed, life.Active} {
			if ids := f.Queues[name].Places[place]; len(ids) > 0 {
				left = append(left, fmt.Sprintf("%d %s in %s, the first one %s", len(ids), place, name, ids[0]))
			}
		}
	}
	j.broke(Settled, "%v after the last fault there were still %s", bound, strings.Join(left, "; "))
}

func (j *judge) lastHealth() *history.Strike {
	for _, s := range slices.Backward(j.h.Strikes) {
		if s.Phase == history.Health {
			return &s
		}
	}
	return nil
}
