package demo

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// evidence is all that the referee knows.
type evidence struct {
	posted   []posted  // what Enqueue accepted
	arrivals []arrival // what the receiver saw, in its order
	kills    []kill
	dead     []string // ids that the store lists as dead
	bars     bars
	strain   spread // of the machine; for people
}

// bars are the promises in figures.
type bars struct {
	kills    int           // that must have hit a running job
	recovery time.Duration // each is shorter
	late     time.Duration // p99 of the lateness is shorter; 0: no bar
}

// barsOf returns what is promised on that store. A miniredis shares a process
// with the demo itself and runs scripts many times slower, so how late a job is
// there says little of Kelpie.
func barsOf(s *store) bars {
	b := bars{kills: 2, recovery: 3 * time.Second}
	if s.real() {
		b.late = 20 * time.Millisecond
	}
	return b
}

// strained tells if the machine was so busy that plain timers came late: then it
// was the machine that was measured, and jobs that came over the bar, through four
// processes one after the other, say nothing.
func (b bars) strained(timers spread) bool {
	return timers.p99 >= b.late/5 || timers.max >= b.late
}

// spread is how some durations are spread.
type spread struct {
	n             int
	p50, p99, max time.Duration
}

// spreadOf takes the nearest rank for a percentile. It sorts its argument.
func spreadOf(d []time.Duration) spread {
	if len(d) == 0 {
		return spread{}
	}
	slices.Sort(d)
	rank := func(percent int) time.Duration { return d[max(0, (percent*len(d)+99)/100-1)] }
	return spread{len(d), rank(50), rank(99), d[len(d)-1]}
}

// never is the recovery time of a kill after which some job never came.
const never = time.Duration(-1)

// verdict is what the referee found.
type verdict struct {
	accepted   int
	delivered  int             // answered with 2xx
	refused    int             // planned to be refused for good
	dead       int             // refused for good
	lost       int             //
	duplicates int             // taken on more than one arrival
	unhurt     int             // of these, held by no node when it was killed
	wrong      int             // arrivals with other bytes than were enqueued
	strangers  int             // arrivals of an id that was never accepted
	early      int             // arrivals before the due time
	recovery   []time.Duration // of each kill; never
	late       spread          // first arrival minus due
	lateAlone  spread          // of those due while no sweeper was there
	strain     spread          // how late a plain timer was meanwhile
	strained   bool            // so late that jobs over the bar are not held against Kelpie
	judged     bool            // the lateness: it had a bar, and the machine was quiet
	broken     []string        // promises that did not hold, a sentence each
}

// fate is what became of one webhook.
type fate struct {
	posted
	came    int // arrivals
	first   time.Time
	willing int // arrivals on which the receiver took it
	taken   bool
	refused bool
}

// judge compares what was promised with what was seen.
func judge(e evidence) verdict {
	v := verdict{accepted: len(e.posted), strain: e.strain}
	fates := v.sort(e)
	hurt := map[string]bool{}
	for _, k := range e.kills {
		for _, id := range k.held {
			hurt[id] = true
		}
	}
	var lost []string
	for id, f := range fates {
		switch {
		case f.refused:
			v.dead++
		case f.taken:
			v.delivered++
		default:
			v.lost++
			lost = append(lost, id)
		}
		if f.plan.refused() {
			v.refused++
		}
		if f.willing > 1 {
			v.duplicates++
			if !hurt[id] {
				v.unhurt++
			}
		}
	}
	v.late, v.lateAlone = lateness(fates, e.kills)
	for _, k := range e.kills {
		v.recovery = append(v.recovery, recovery(k, e.arrivals))
	}
	v.settle(e, fates, lost)
	return v
}

// sort gives each arrival to its webhook and counts those that fit none.
func (v *verdict) sort(e evidence) map[string]*fate {
	fates := make(map[string]*fate, len(e.posted))
	for _, p := range e.posted {
		fates[p.id] = &fate{posted: p}
	}
	for _, a := range e.arrivals {
		f := fates[a.id]
		if f == nil {
			v.strangers++
			continue
		}
		if f.came++; f.came == 1 {
			f.first = a.at
		}
		if a.number != f.number || a.sum != f.plan.letter.sum {
			v.wrong++
			continue
		}
		if !f.due.IsZero() && a.at.Before(f.due) {
			v.early++
		}
		if a.answer.willing() {
			f.willing++
		}
		f.taken = f.taken || a.answered && a.answer.willing()
		f.refused = f.refused || a.answered && a.answer.final()
	}
	return fates
}

// lateness returns how late the delayed ones arrived first; those due while a
// killed sweeper had no successor apart.
func lateness(fates map[string]*fate, kills []kill) (served, alone spread) {
	var late, lateAlone []time.Duration
	for _, f := range fates {
		if f.due.IsZero() || f.came == 0 {
			continue
		}
		unswept := slices.ContainsFunc(kills, func(k kill) bool {
			return k.sweeper && !f.due.Before(k.at) && (k.next.IsZero() || f.due.Before(k.next))
		})
		if d := f.first.Sub(f.due); unswept {
			lateAlone = append(lateAlone, d)
		} else {
			late = append(late, d)
		}
	}
	return spreadOf(late), spreadOf(lateAlone)
}

// recovery returns the time from the kill to the arrival of the last job that
// the killed node held.
func recovery(k kill, arrivals []arrival) (longest time.Duration) {
	left := make(map[string]bool, len(k.held))
	for _, id := range k.held {
		left[id] = true
	}
	for _, a := range arrivals {
		if d := a.at.Sub(k.at); d > onTheWire && left[a.id] {
			delete(left, a.id)
			longest = max(longest, d)
		}
	}
	if len(left) > 0 {
		return never
	}
	return longest
}

// settle names every promise that did not hold.
func (v *verdict) settle(e evidence, fates map[string]*fate, lost []string) {
	broken := func(format string, args ...any) { v.broken = append(v.broken, fmt.Sprintf(format, args...)) }
	if v.accepted == 0 {
		broken("nothing was accepted")
	}
	if v.lost > 0 {
		broken("%d accepted webhooks were neither delivered nor refused for good: %s", v.lost, some(lost))
	}
	if v.wrong > 0 {
		broken("%d arrivals had other bytes than were enqueued", v.wrong)
	}
	if v.strangers > 0 {
		broken("%d arrivals had a Webhook-Id that was never accepted", v.strangers)
	}
	if v.early > 0 {
		broken("%d arrivals were before their due time", v.early)
	}
	v.settleDead(e, fates, broken)
	if len(e.kills) < e.bars.kills {
		broken("%d nodes were killed, %d were meant to be", len(e.kills), e.bars.kills)
	}
	for i, k := range e.kills {
		switch d := v.recovery[i]; {
		case len(k.held) == 0:
			broken("the kill of %s met no job: nothing was shown", k.node)
		case d == never:
			broken("not all jobs of %s came back after its kill", k.node)
		case d >= e.bars.recovery:
			broken("the recovery from the kill of %s took %.2f s: must be under %v", k.node, d.Seconds(), e.bars.recovery)
		}
	}
	over := e.bars.late > 0 && v.late.p99 >= e.bars.late
	v.strained = over && e.bars.strained(v.strain)
	v.judged = e.bars.late > 0 && !v.strained
	if over && !v.strained {
		broken("the lateness p99 is %s: must be under %v (a plain timer of this process was at most %s late meanwhile)",
			millis(v.late.p99), e.bars.late, millis(v.strain.max))
	}
}

// settleDead holds the dead against the plan, one by one: those that the
// receiver refused, and those that the store lists.
func (v *verdict) settleDead(e evidence, fates map[string]*fate, broken func(string, ...any)) {
	if v.dead != v.refused {
		broken("%d webhooks were refused for good: the plan was %d", v.dead, v.refused)
	}
	listed := map[string]bool{}
	var innocent []string
	for _, id := range e.dead {
		listed[id] = true
		if f := fates[id]; f == nil || !f.plan.refused() {
			innocent = append(innocent, id)
		}
	}
	if len(innocent) > 0 {
		broken("%d jobs are dead that nobody refused for good: %s", len(innocent), some(innocent))
	}
	var missing []string
	for id, f := range fates {
		if f.plan.refused() && !listed[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		broken("%d webhooks that were to be refused for good are not among the dead: %s", len(missing), some(missing))
	}
}

// some names the first few.
func some(ids []string) string {
	const few = 3
	slices.Sort(ids)
	if more := len(ids) - few; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:few], ", "), more)
	}
	return strings.Join(ids, ", ")
}

// sumOf is what the receiver sees of a body.
func sumOf(body []byte) [sha256.Size]byte { return sha256.Sum256(body) }
