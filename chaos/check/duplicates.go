package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// duplicates finds every start of a handler for a job whose earlier attempt had
// not ended by itself, and looks for its cause.
func (j *judge) duplicates() {
	var all []Duplicate
	for _, k := range sorted(j.runs.byJob) {
		list := j.runs.byJob[k]
		j.checked(Duplicated, len(list))
		if len(list) < 2 {
			continue
		}
		if d := j.duplicate(k, list); d != nil {
			all = append(all, *d)
		}
	}
	j.v.Measures[MeasureDuplicates] = float64(len(all))
	slices.SortStableFunc(all, func(a, b Duplicate) int { return min(len(a.Cause), 1) - min(len(b.Cause), 1) })
	j.v.Duplicates = all[:min(len(all), MostDuplicates)]
}

// sorted returns the jobs of a map in an order that does not change.
func sorted[T any](of map[key]T) []key {
	return slices.SortedFunc(maps.Keys(of), func(a, b key) int {
		return cmp.Or(strings.Compare(a.queue, b.queue), strings.Compare(a.id, b.id))
	})
}

// duplicate looks at the runs of one job, by their start.
func (j *judge) duplicate(k key, list []*run) *Duplicate {
	d := &Duplicate{ID: k.id, Queue: k.queue}
	belongs := map[*run]bool{}
	unexplained := ""
	for i, b := range list[1:] {
		for _, a := range list[:i+1] {
			overlap := sameClaim(a, b) || a.ended > b.T
			older, newer := a, b
			if claimedLater(a, b) { // b is late: its node had slept since the claim
				older, newer = b, a
			}
			if a != list[i] && !overlap || !overlap && j.ended(older, newer) {
				continue
			}
			belongs[a], belongs[b] = true, true
			d.Overlap = d.Overlap || a.ended > b.T
			cause, blow := j.cause(older, newer)
			switch {
			case cause == "":
				unexplained = fmt.Sprintf("%s started on %s with fence %d beside its run on %s with fence %d, and no fault explains both",
					k, b.Node, b.Fence, a.Node, a.Fence)
			case d.Cause == "":
				if d.Cause = cause; blow != nil {
					d.Fault = blow.n
				}
			}
		}
	}
	if len(belongs) == 0 {
		return nil
	}
	for _, r := range list {
		if belongs[r] {
			d.Runs = append(d.Runs, r.span())
		}
	}
	if unexplained != "" {
		d.Cause, d.Fault = "", 0
		j.broke(Duplicated, "%s", unexplained)
	}
	return d
}

// sameClaim reports that two runs have the same claim.
func sameClaim(a, b *run) bool {
	if a.claim == nil || b.claim == nil {
		return a.claim == b.claim && a.Fence == b.Fence && a.Node == b.Node
	}
	return a.claim == b.claim
}

// claimedLater reports that the claim of a came after that of b. Fences tell it
// only where the log does not, since a Redis that was set back gives them out anew.
func claimedLater(a, b *run) bool {
	if a.claim == nil || b.claim == nil {
		return a.Fence > b.Fence
	}
	return a.claim.n > b.claim.n
}

// ended reports that an attempt ended by its own settlement, as far as Redis
// kept it until the next one, and that another one was to follow, so that this is
// no duplicate.
func (j *judge) ended(r, next *run) bool {
	a := r.claim
	if a == nil {
		return false
	}
	end := a.end
	if a.lost || a.undone != nil {
		if j.faults.lossWithin(min(r.T, next.T), max(r.T, next.T)) != nil {
			return false
		}
		end = cmp.Or(a.undone, a.end) // Redis lost it later, or not at all
	}
	switch {
	case end == nil:
		return false
	case strings.Contains("RSLUD", end.verb) && end.verb != "": // of a dead one: it was revived
		return true
	case end.verb == "C" || end.verb == "X":
		return j.log.stored[a.key].us > end.us // its id was forgotten, and used again
	}
	return false
}

// cause returns why b may have started though a had not ended for good. b has
// the later claim.
func (j *judge) cause(a, b *run) (string, *blow) {
	from, until := min(a.T, b.T), max(a.T, b.T, a.ended)
	lost := j.faults.lossWithin(from, until)
	switch c := a.claim; {
	case lost != nil && (c == nil || c.lost || c.undone != nil || c.end == nil):
		return fmt.Sprintf("Redis lost what it knew of the first one (%s)", lost.kind), lost
	case j.h.Final == nil && (c == nil || c.end == nil || b.claim == nil):
		return "not known: the run never came to its end, so the log may not have been read to its own", nil
	case c == nil || c.end == nil || sameClaim(a, b):
		return "", nil
	case c.end.verb == "":
		return j.causeOfReclaim(c, lost)
	case a.cause == "timeout" && (c.end.verb == "R" || c.end.verb == "D"):
		return "the handler ran on after its time was over", nil
	case c.end.verb == "L":
		return j.causeOfHandBack(a, until)
	}
	return "", nil
}

// causeOfReclaim: the node had died, or Redis had forgotten it.
func (j *judge) causeOfReclaim(a *attempt, lost *blow) (string, *blow) {
	t := j.at(history.Step{US: a.end.us, T: never})
	if blow := j.faults.struck(a.session, j.bornAt(a.session), t); blow != nil {
		return fmt.Sprintf("the job was taken from %s, which was hit by %s", a.session, blow.kind), blow
	}
	if lost != nil {
		return fmt.Sprintf("Redis forgot that %s was alive (%s)", a.session, lost.kind), lost
	}
	return "", nil
}

// causeOfHandBack: the node handed back what a handler that ignores its context
// still ran, since it stopped, or was cut off and in doubt.
func (j *judge) causeOfHandBack(a *run, until int64) (string, *blow) {
	session := a.claim.session
	blow := j.faults.during(a.T, until, func(b *blow) bool {
		return harmsRedis(b) || slices.ContainsFunc(b.hits, func(h history.Strike) bool {
			return (h.Session == session || h.Target == a.Node) && (j.faults.silences(b, h) || harmsLinks(b))
		})
	})
	if blow == nil {
		return "", nil
	}
	return fmt.Sprintf("%s handed the job back while its handler ran on (%s)", session, blow.kind), blow
}
