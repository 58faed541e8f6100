package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
	"github.com/kelpiehq/kelpie/queue"
)

// client is a way to Redis for the producer and the judge.
func (r *run) client(t *testing.T, a *actor) (*redis.Client, *queue.Client) {
	rdb, err := queue.Connect("redis://simulation:6379", a.tune)
	if err != nil {
		t.Fatal(err)
	}
	space, err := queue.New(rdb, queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return rdb, space
}

// judge replays the log against the model of a job's life, and holds what is
// left in Redis, what the producer was told and what handlers did against it. It
// returns the log as text.
func (r *run) judge(t *testing.T, settled bool) string {
	rdb, space := r.client(t, r.actor("judge"))
	defer rdb.Close()
	model := life.New(r.plan.workers)
	var text strings.Builder
	for _, q := range []string{life.Cluster, queue.DefaultQueue} {
		entries, err := space.ReadLog(context.Background(), q, 0, 100_000)
		if err != nil {
			r.complain("the log cannot be read: %v", err)
			return ""
		}
		for _, e := range entries {
			fmt.Fprintf(&text, "%9.4f log %-7s %3d %s\n", e.At.Sub(r.began).Seconds(), q, e.Index, strings.ReplaceAll(e.Raw, "\n", " | "))
			for _, v := range model.Apply(asStep(q, e)) {
				r.complain("%s: %v", v.Rule, v)
			}
			r.honest(e)
		}
	}
	q := model.Queue(queue.DefaultQueue)
	if q == nil { // nothing reached it
		return text.String()
	}
	r.kept(q, settled)
	r.atRest(q)
	return text.String()
}

func asStep(q string, e queue.LogEntry) history.Step {
	s := history.Step{Queue: q, Index: e.Index, US: e.At.UnixMicro(), Script: e.Script, Who: e.Who, Turn: e.Turn, Epoch: e.Epoch}
	for _, m := range e.Moves {
		s.Moves = append(s.Moves, history.Move{
			What: m.What, ID: m.ID, From: string(m.From), To: string(m.To), Fence: m.Fence, Session: m.Session,
			Shown: m.Shown, Verb: m.Verb, Again: m.Again, Due: m.Due, Until: m.Until, Spent: m.Spent, Max: m.Max,
		})
	}
	return s
}

// honest: what a settlement says is what a handler with that fence did.
func (r *run) honest(e queue.LogEntry) {
	said := map[string]string{"C": "ok", "R": "fail panic", "D": "fail panic discard", "S": "snooze"}
	for _, m := range e.Moves {
		switch r.met[m.What]++; {
		case m.Verb == "L":
			r.met["release"]++
		case m.To == queue.Dead:
			r.met["dead"]++
		}
		if m.What == history.Settle && said[m.Verb] != "" && !strings.Contains(said[m.Verb], or(r.ended[m.Fence], "-")) {
			r.complain("%s was settled as %s with fence %d, whose handler ended as %q", m.ID, m.Verb, m.Fence, r.ended[m.Fence])
		}
	}
}

// kept: what was accepted has ended, and what was refused was not stored.
func (r *run) kept(q *life.Queue, settled bool) {
	for i, o := range r.offers {
		j := q.Job(o.id)
		switch {
		case o.err == nil && j.Place == life.Nowhere:
			r.complain("lost: task %d, %s, was accepted and is nowhere", i, o.id)
		case o.err != nil && !queue.IsUnknown(o.err) && j.Place != life.Nowhere:
			r.complain("phantom: task %d, %s, was refused (%v) and is %s", i, o.id, o.err, j.Place)
		}
	}
	for id, j := range q.Jobs() {
		if settled && !j.Over() {
			r.complain("settled: nothing waits in Redis, but %s is %s by its log", id, j.Place)
		}
	}
}

// atRest compares Redis with the model: places, bodies, counters.
func (r *run) atRest(q *life.Queue) {
	key := func(what string) string { return "kelpie:{default}:" + what }
	have, want := map[string][]string{}, map[string][]string{}
	for _, place := range []string{life.Waiting, life.Delayed, life.Dead, life.Completed, life.Cancelled} {
		have[place], _ = r.redis.ZMembers(key(place))
	}
	have[life.Active], _ = r.redis.HKeys(key("active"))
	have["bodies"], _ = r.redis.HKeys(key("jobs"))
	for id, j := range q.Jobs() {
		if place := j.Kept(); place != life.Nowhere {
			want[place] = append(want[place], id)
			want["bodies"] = append(want["bodies"], id)
		}
	}
	for place := range have {
		slices.Sort(have[place])
		slices.Sort(want[place])
		if !slices.Equal(have[place], want[place]) {
			r.complain("place: %s are %q in Redis, %q by the log", place, have[place], want[place])
		}
	}
	for name, n := range q.Totals().Map() {
		if got := or(r.redis.HGet(key("meta"), name), "0"); got != fmt.Sprint(n) {
			r.complain("counters: %s is %s in Redis, %d by the log", name, got, n)
		}
	}
}
