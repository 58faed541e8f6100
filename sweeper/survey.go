package sweeper

import (
	"context"
	"slices"
	"time"
)

// absentFor is how long a name is kept that is no session, at the most.
const absentFor = time.Minute

// survey looks for holders of jobs in some queues that are no session: left by
// a sweeper that died before it was done, by a bye, or by a roll-back of Redis.
// The holders are read first and the sessions after: a session registers before
// its first exchange, so a live holder is always found among them.
func (a *auditor) survey(ctx context.Context, queues []string) {
	if len(queues) == 0 {
		return
	}
	holders := a.holders(ctx, queues)
	if len(holders) == 0 {
		return
	}
	sessions, condemned, err := a.s.o.Space.Sessions(ctx)
	if err != nil {
		a.note(ctx, "survey", err)
		return
	}
	a.s.trouble.over("survey")
	now := time.Now()
	for q, names := range holders {
		c := a.chores[q]
		c.met, c.again = true, time.Time{}
		for _, name := range names {
			_, lives := sessions[name]
			_, dead := condemned[name]
			if a.wait(name, lives, dead, now) {
				c.again = now.Add(a.s.o.Silence)
			}
		}
	}
	for name, since := range a.absent {
		if now.Sub(since) > absentFor {
			delete(a.absent, name)
		}
	}
}

// surveyBatch is how many queues are read in one round trip.
const surveyBatch = 20

// holders leaves out the queues that could not be read; they are surveyed again.
func (a *auditor) holders(ctx context.Context, queues []string) map[string][]string {
	holders := make(map[string][]string, len(queues))
	for batch := range slices.Chunk(queues, surveyBatch) {
		if !a.goes(ctx, auditing) {
			return nil
		}
		for _, h := range a.s.o.Space.Holders(ctx, batch) {
			if h.Err != nil {
				a.note(ctx, "survey", h.Err)
				a.chores[h.Queue].met = false
				continue // the others' jobs do not wait for this one
			}
			holders[h.Queue] = h.Sessions
		}
	}
	return holders
}

// wait judges one holder, and reports whether it must be looked at once more.
// After a roll-back of Redis live nodes are missing for a beat; so a name that
// is neither a session nor condemned is dead only when this node has missed it
// for the time of silence, here and in its watch.
func (a *auditor) wait(name string, lives, condemned bool, now time.Time) bool {
	switch {
	case lives || name == a.s.o.Session:
		delete(a.absent, name)
		return false
	case condemned:
		a.ward.add(name)
		return false
	}
	since, known := a.absent[name]
	if !known {
		a.absent[name] = now
		return true
	}
	if now.Sub(since) < a.s.o.Silence || a.s.o.Watch.Missing(name, now) < a.s.o.Silence {
		return true
	}
	a.s.o.Log.Warn().Str("session", name).Msg("a holder of jobs is no session: taken for dead")
	delete(a.absent, name)
	a.ward.add(name)
	return false
}
