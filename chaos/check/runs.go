package check

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// run is one run of a handler.
type run struct {
	history.Mark       // its start
	ended        int64 // T; 0: never written
	outcome      string
	cause        string
	claim        *attempt // nil: not in the log
}

func (r *run) key() key { return key{r.Queue, r.ID} }

func (r *run) span() Span {
	return Span{Node: r.Node, Attempt: r.Attempt, Fence: r.Fence, From: r.T, To: r.ended, Outcome: r.outcome}
}

// runs are all runs of handlers.
type runs struct {
	all   []*run
	byJob map[key][]*run // by start
	maker map[key]*call  // by the payload of a run: whose call made the job
}

type process struct {
	node string
	pid  int
}

// open finds a run that has not ended yet.
type open struct {
	ticket
	pid int
}

func (j *judge) readRuns() *runs {
	r := &runs{byJob: map[key][]*run{}, maker: map[key]*call{}}
	going := map[open][]*run{} // by start: a token that was given out twice can run twice
	for _, m := range j.h.Marks {
		at := open{ticket{key{m.Queue, m.ID}, m.Fence, m.Node}, m.PID}
		if m.E == "start" {
			one := &run{Mark: m, claim: j.claimOf(at.ticket, m.T)}
			r.all = append(r.all, one)
			r.byJob[at.key] = append(r.byJob[at.key], one)
			going[at] = append(going[at], one)
		} else if list := going[at]; len(list) > 0 {
			list[0].ended, list[0].outcome, list[0].cause = m.T, m.Outcome, m.Cause
			going[at] = list[1:]
		}
	}
	for _, list := range r.byJob {
		slices.SortStableFunc(list, func(a, b *run) int { return cmp.Compare(a.T, b.T) })
	}
	return r
}

// claimOf returns the claim that a run at t belongs to: the last one before it, of
// those that its node made. Where the node has none it is another node's: which is
// wrong, unless Redis lost the log of the right one.
func (j *judge) claimOf(by ticket, t int64) *attempt {
	own := j.log.byTicket[by]
	for _, a := range slices.Backward(own) {
		if j.at(history.Step{US: a.us, T: t}) <= t+clockSlop {
			return a
		}
	}
	if len(own) > 0 {
		return own[0]
	}
	if lost, _ := j.faults.lossAfter(t); lost != nil {
		return nil
	}
	for _, a := range j.log.byJob[by.key] {
		if a.fence == by.fence {
			return a
		}
	}
	return nil
}

// handlers holds each run against its claim, its call and its payload.
func (j *judge) handlers() {
	j.width()
	for _, r := range j.runs.all {
		j.claimed(r)
		j.payload(r)
	}
	j.sums()
}

// claimed: a handler runs what its node claimed, under the number of the attempt.
func (j *judge) claimed(r *run) {
	j.checked(Phantom, 1)
	a := r.claim
	switch {
	case a == nil && j.h.Final == nil:
		j.unsure(Phantom, "the run never came to its end, so the log may not have been read to its own")
		return
	case a == nil:
		_, emptied := j.log.whole[r.Queue]
		if lost, _ := j.faults.lossAfter(r.T); lost == nil && !emptied {
			j.broke(Phantom, "%s ran on %s with fence %d, but nobody had claimed it so", r.key(), r.Node, r.Fence)
		}
		return
	}
	if nodeOf(a.session) != r.Node {
		j.broke(Settlement, "%s ran on %s, but %s had claimed it", r.key(), r.Node, a.session)
	}
	if r.Attempt != a.spent+1 {
		j.broke(Attempts, "%s ran as attempt %d after %d attempts spent", r.key(), r.Attempt, a.spent)
	}
	if r.outcome == "cut" && (r.cause == "shutdown" || r.cause == "session lost") && a.end != nil && (a.end.verb == "R" || a.end.verb == "D") {
		j.broke(Graceful, "%s was cut short by its node (%s), and that spent an attempt", r.key(), r.cause)
		j.v.Measures[SpentGraceful]++
	}
}

// payload holds what arrived against what was sent, and finds who sent it.
func (j *judge) payload(r *run) {
	j.checked(Payload, 1)
	if strings.HasPrefix(r.Sum, "bad: ") {
		j.broke(Payload, "%s arrived on %s as %s", r.key(), r.Node, r.Sum)
		return
	}
	c := j.calls.byOp[r.Op]
	switch {
	case c == nil:
		j.broke(Phantom, "%s ran for call %q, which nobody made", r.key(), r.Op)
		return
	case c.Sum != "" && r.Sum != "" && c.Sum != r.Sum:
		j.broke(Payload, "%s arrived on %s with checksum %s, but call %s sent %s", r.key(), r.Node, r.Sum, c, c.Sum)
	}
	switch other := j.runs.maker[r.key()]; {
	case c.Queue != r.Queue || c.ID != "" && c.ID != r.ID:
		j.broke(Phantom, "%s ran for call %s, which made %s", r.key(), c, c.key())
	case !c.could():
		j.broke(Phantom, "%s ran for call %s, which had failed: %s", r.key(), c, c.err)
	case other != nil && other != c && len(j.calls.made[r.key()]) == 0:
		j.broke(Phantom, "%s ran for call %s and for call %s", r.key(), other, c)
	}
}

// makers finds the call behind each job that ran, and calls that made two.
func (j *judge) makers() {
	made := map[*call]key{}
	for _, r := range j.runs.all {
		c, k := j.calls.byOp[r.Op], r.key()
		if c == nil || !c.could() {
			continue
		}
		if j.runs.maker[k] == nil {
			j.runs.maker[k] = c
		}
		if first, twice := made[c]; twice && first != k {
			j.broke(Phantom, "call %s made two jobs: %s and %s", c, first, k)
		}
		made[c] = k
	}
}

// sums holds the payloads that are still there against what was sent.
func (j *judge) sums() {
	if j.h.Final == nil {
		return
	}
	for name, q := range j.h.Final.Queues {
		for id, sum := range q.Sums {
			made := j.calls.made[key{name, id}]
			if len(made) == 0 {
				continue
			}
			j.checked(Payload, 1)
			if !slices.ContainsFunc(made, func(c *call) bool { return c.Sum == sum || c.Sum == "" }) {
				j.broke(Payload, "%s/%s is kept with checksum %s, but call %s sent %s", name, id, sum, made[0], made[0].Sum)
			}
		}
	}
}

// width holds the handlers that ran at the same time in one process against its
// workers.
func (j *judge) width() {
	most := j.h.Run.Settings.Workers
	if most <= 0 {
		return
	}
	running, told := map[process]int{}, map[process]bool{}
	for _, m := range j.h.Marks {
		p := process{m.Node, m.PID}
		if m.E != "start" {
			running[p]--
			continue
		}
		j.checked(Slots, 1)
		if running[p]++; running[p] > most && !told[p] {
			told[p] = true
			j.broke(Slots, "%s (process %d) ran %d handlers at once, with %d workers", m.Node, m.PID, running[p], most)
		}
	}
}
