package sweeper

import (
	"context"
	"slices"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

const (
	auditEvery   = 10 * time.Second // per queue
	auditsAtOnce = 5                // queues a second
	trimBatch    = 100              // ended jobs of one place that a Trim takes
)

// chores is what is planned for a queue besides its promotion.
type chores struct {
	met    bool      // surveyed in this term
	again  time.Time // survey it once more then; zero: no need
	audit  time.Time // when it is surveyed, repaired and trimmed next
	trim   bool      // there is something to trim
	cursor queue.TrimCursor
}

// auditor is what audit remembers of its term; only its goroutine touches it.
type auditor struct {
	*term
	queues []string
	chores map[string]*chores
	absent map[string]time.Time // holders that are no session and not condemned: when that was seen first
}

// audit looks after the queues in turn until ctx ends. One that is new to this
// term is surveyed at once, so that nothing waits which the sweeper before left
// undone; the rest takes its time.
func (t *term) audit(ctx context.Context) {
	a := &auditor{term: t, chores: map[string]*chores{}, absent: map[string]time.Time{}}
	var last time.Time // of the last audits
	for t.goes(ctx, auditing) {
		now := time.Now()
		a.meet(t.agenda.queues(), now)
		var audits []string
		if last.IsZero() || now.Sub(last) >= time.Second {
			if audits = a.due(now); len(audits) > 0 {
				last = now
			}
		}
		a.survey(ctx, a.unsurveyed(now, audits))
		for _, q := range audits {
			a.repair(ctx, q)
		}
		if !a.trimAll(ctx) {
			pause(ctx, turnEvery, t.agenda.fresh)
		}
	}
}

// meet takes up new queues and forgets those that are no more.
func (a *auditor) meet(queues []string, now time.Time) {
	there := make(map[string]*chores, len(queues))
	for _, q := range queues {
		if there[q] = a.chores[q]; there[q] == nil {
			there[q] = &chores{audit: now}
		}
	}
	a.queues, a.chores = slices.Clone(queues), there
}

// due returns a few queues whose audit is due, the longest due first, and plans
// their next one.
func (a *auditor) due(now time.Time) []string {
	var due []string
	for _, q := range a.queues {
		if !a.chores[q].audit.After(now) {
			due = append(due, q)
		}
	}
	slices.SortStableFunc(due, func(p, q string) int { return a.chores[p].audit.Compare(a.chores[q].audit) })
	due = due[:min(len(due), auditsAtOnce)]
	for _, q := range due {
		a.chores[q].audit, a.chores[q].trim = now.Add(auditEvery), true
	}
	return due
}

// unsurveyed adds to audits the queues that cannot wait for theirs.
func (a *auditor) unsurveyed(now time.Time, audits []string) []string {
	queues := slices.Clone(audits)
	for _, q := range a.queues {
		c := a.chores[q]
		soon := !c.met || !c.again.IsZero() && !c.again.After(now)
		if soon && !slices.Contains(audits, q) {
			queues = append(queues, q)
		}
	}
	return queues
}

// repair mends what a broken step or a lost write left in a queue.
func (a *auditor) repair(ctx context.Context, q string) {
	if !a.goes(ctx, auditing) {
		return
	}
	_ = a.under(ctx, "audit", func(epoch int64) error {
		r, err := a.s.o.Space.Audit(ctx, q, epoch)
		if r.Orphans+r.Strays > 0 { // also before an error
			a.s.count.orphans.Add(int64(r.Orphans))
			a.s.count.strays.Add(int64(r.Strays))
			a.s.o.Log.Warn().Str("queue", q).Int("orphans", r.Orphans).Int("strays", r.Strays).
				Msgf("repaired queue %s: %d ids without a body removed, %d bodies without a place put back", q, r.Orphans, r.Strays)
		}
		return err
	})
}

// trimAll gives each queue with something to trim one bounded turn, and reports
// whether there is more to do at once.
func (a *auditor) trimAll(ctx context.Context) (more bool) {
	for _, q := range a.queues {
		if a.chores[q].trim && a.goes(ctx, auditing) {
			a.chores[q].trim = a.trimBatch(ctx, q)
			more = more || a.chores[q].trim
		}
	}
	return more
}

// trimBatch reports whether it was full, so that there may be more. The small
// hashes are walked a step at a time and have all day; after an error the next
// audit begins again.
func (a *auditor) trimBatch(ctx context.Context, q string) (full bool) {
	var got queue.Trimmed
	err := a.under(ctx, "trim", func(epoch int64) (err error) {
		got, err = a.s.o.Space.Trim(ctx, q, epoch, a.chores[q].cursor)
		return err
	})
	if err != nil {
		return false
	}
	a.chores[q].cursor = got.Next
	a.s.count.forgotten.Add(int64(max(got.Forgotten-len(got.Dropped), 0)))
	a.s.count.dropped.Add(int64(len(got.Dropped)))
	if len(got.Dropped) > 0 {
		a.s.o.Log.Warn().Str("queue", q).Int("jobs", len(got.Dropped)).Strs("ids", got.Dropped).
			Msgf("dropped the %d oldest dead jobs of queue %s: it keeps %d", len(got.Dropped), q, queue.MaxDead)
	}
	return max(got.Forgotten, len(got.Dropped), got.Swept) >= trimBatch
}
