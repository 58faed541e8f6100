package check

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ruled returns the verdict on one rule.
func ruled(t *testing.T, v *Verdict, rule string) Invariant {
	t.Helper()
	i := slices.IndexFunc(v.Invariants, func(i Invariant) bool { return i.Name == rule })
	if i < 0 {
		t.Fatalf("there is no rule %q", rule)
	}
	return v.Invariants[i]
}

// once runs a job through.
func (w *world) once(id, session string) {
	w.enqueue(id, 0)
	w.claim(id, session)
	w.pass(50 * time.Millisecond)
	w.finish(id, "C")
}

// broken are histories that break one rule, by a sentence that says how.
var broken = map[string]struct {
	rule string
	do   func(w *world)
}{
	"an accepted job that was never stored": {Lost, func(w *world) { w.call("enqueue", "x", history.OK, nil) }},
	"an accepted job that nobody runs, where nothing waits": {Lost, func(w *world) {
		w.enqueue("x", 0)
		delete(w.jobs, "x")
	}},
	"a job that Redis lost outside of its window": {Lost, func(w *world) {
		w.h.Run.Durable, w.h.Run.Loss.Window = "failover", time.Second
		w.call("enqueue", "x", history.OK, nil)
		w.pass(3 * time.Second)
		w.strike("failover", "", "", time.Second)
	}},
	"a job without a call": {Phantom, func(w *world) {
		w.enqueue("x", 0)
		w.h.Ops = w.h.Ops[:0]
	}},
	"one call that made two jobs": {Phantom, func(w *world) {
		w.once("x", "n1-a")
		op := w.jobs["x"].op
		w.accept("y", 0, "").op = op
		w.claim("y", "n1-a")
		w.finish("y", "C")
	}},
	"a job of a call that failed": {Phantom, func(w *world) {
		w.accept("x", 0, history.Fail)
		w.claim("x", "n1-a")
		w.finish("x", "C")
	}},
	"a run that nobody had claimed": {Phantom, func(w *world) {
		w.once("x", "n1-a")
		w.jobs["x"].Fence = 7
		w.start("x")
		w.mark("x", "end", "ok")
	}},
	"an id in two places": {Place, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "D")
		defer func() { w.h.Final.Queues["q"].Places["waiting"] = []string{"x"} }()
		w.history()
	}},
	"an id without a body": {Place, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "D")
		w.history()
		delete(w.h.Final.Queues["q"].Bodies, "x")
	}},
	"a body without a place": {Place, func(w *world) {
		w.history()
		w.h.Final.Queues["q"].Bodies["x"] = "1 chaos.work 2 5 0"
	}},
	"a dead job that is gone": {Place, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "D")
		w.history()
		w.h.Final.Queues["q"].Places["dead"] = nil
		delete(w.h.Final.Queues["q"].Bodies, "x")
	}},
	"a repair though Redis lost nothing": {Place, func(w *world) {
		w.once("x", "n1-a")
		w.step("q", "repair", "", history.Move{What: history.Stray, ID: "x", To: life.Waiting})
		w.jobs["x"].Place = life.Waiting
		w.totals["strays"]++
	}},
	"a claim of a job that another attempt has": {Settlement, func(w *world) {
		w.enqueue("x", 0)
		w.grant("x", "n1-a")
		w.grant("x", "n2-b")
		w.start("x")
		w.finish("x", "C")
	}},
	"a settlement by somebody else": {Settlement, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "C")
		w.last().Who, w.last().Turn = "n2-b", 100
	}},
	"a settlement by an older fence": {Settlement, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "C")
		w.last().Moves[0].Shown = 3
	}},
	"the current attempt is refused": {Settlement, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.step("q", "exchange", "n1-a", history.Move{What: history.Stale, ID: "x", Fence: w.jobs["x"].Fence, Session: "n1-a", Verb: "C"})
		w.totals["stale"]++
		w.finish("x", "C")
	}},
	"a failure that is not counted": {Attempts, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "R")
		w.last().Moves[0].Spent = 0
		w.jobs["x"].Spent = 0
		w.pass(time.Second)
		w.promote("x")
		w.claim("x", "n1-a")
		w.finish("x", "C")
	}},
	"a job that is tried without end": {Attempts, func(w *world) {
		w.enqueue("x", 0)
		for range 3 {
			w.claim("x", "n1-a")
			w.finish("x", "R")
			w.pass(time.Second)
			w.promote("x")
		}
		w.claim("x", "n1-a")
		w.finish("x", "D")
	}},
	"a completed job that is settled again": {FinalState, func(w *world) {
		w.once("x", "n1-a")
		w.settle("x", "C")
	}},
	"a job that is stored again after its end": {FinalState, func(w *world) {
		w.once("x", "n1-a")
		w.once("x", "n1-a")
	}},
	"a promotion before the due time": {Early, func(w *world) {
		w.enqueue("x", time.Second)
		w.promote("x")
		w.claim("x", "n1-a")
		w.finish("x", "C")
	}},
	"more handlers than workers": {Slots, func(w *world) {
		for _, id := range []string{"1", "2", "3", "4", "5"} {
			w.enqueue(id, 0)
			w.claim(id, "n1-a")
		}
		for _, id := range []string{"1", "2", "3", "4", "5"} {
			w.finish(id, "C")
		}
	}},
	"an older epoch": {Epoch, func(w *world) {
		old := w.epoch
		w.raise("n2-b")
		w.step("q", "trim", "")
		w.epoch = old
		w.step("q", "trim", "")
	}},
	"an epoch that nobody raised": {Epoch, func(w *world) {
		w.epoch += 5
		w.step("q", "trim", "")
	}},
	"a turn that comes again": {Turns, func(w *world) {
		w.once("x", "n1-a")
		w.last().Turn--
	}},
	"a claim after the mark": {Gone, func(w *world) {
		w.die("n1-a")
		w.once("x", "n1-a")
	}},
	"a reclaim without the mark": {Gone, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.gone["n1-a"] = true
		w.die("n1-a")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	}},
	"a live session that is condemned": {Condemned, func(w *world) { w.condemn("n1-a") }},
	"a session that is condemned while Redis is paused": {Condemned, func(w *world) {
		w.strike("redis-pause", "", "", 10*time.Second)
		w.pass(10 * time.Second)
		w.condemn("n1-a")
		w.pass(time.Second)
		w.reclaim("n1-a")
	}},
	"a session that is condemned long after a short stop": {Condemned, func(w *world) {
		w.strike("stop", "STOP", "n1-a", time.Second)
		w.pass(20 * time.Second)
		w.condemn("n1-a")
	}},
	"a session that is marked gone while it lives": {Condemned, func(w *world) { w.reclaim("n1-a") }},
	"a graceful stop that costs an attempt": {Graceful, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.strike("term", "TERM", "n1-a", time.Second)
		w.pass(time.Second)
		w.bye("n1-a")
		w.reclaim("n1-a")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	}},
	"a hand-back that costs an attempt": {Graceful, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.jobs["x"].Spent++
		w.finish("x", "L")
		w.claim("x", "n1-a")
		w.finish("x", "C")
	}},
	"a handler cut by a stop whose attempt counts as failed": {Graceful, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.mark("x", "end", "cut").Cause = "shutdown"
		w.settle("x", "R")
		w.pass(time.Second)
		w.promote("x")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	}},
	"a payload that arrives broken": {Payload, func(w *world) {
		w.enqueue("x", 0).sum = "bad: checksum"
		w.claim("x", "n1-a")
		w.finish("x", "C")
	}},
	"a payload of another job": {Payload, func(w *world) {
		w.enqueue("x", 0).sum = "another"
		w.claim("x", "n1-a")
		w.finish("x", "C")
	}},
	"a counter that is wrong": {Counters, func(w *world) {
		w.once("x", "n1-a")
		w.totals["completed"]++
	}},
	"jobs that wait for ever": {Settled, func(w *world) {
		w.enqueue("x", 0)
		w.settled = false
	}},
	"a second start without a cause": {Duplicated, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.start("x")
		w.finish("x", "C")
	}},
	"a full Redis that settles nothing": {Full, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.strike("redis-full", "", "", 8*time.Second)
		w.pass(time.Second)
		w.mark("x", "end", "ok")
		w.pass(10 * time.Second)
		w.settle("x", "C")
	}},
	"a full Redis that settles some": {Full, func(w *world) {
		w.enqueue("x", 0)
		w.enqueue("y", 0)
		w.claim("x", "n1-a")
		w.claim("y", "n1-a")
		w.strike("redis-full", "", "", 8*time.Second)
		w.pass(time.Second)
		w.finish("x", "C")
		w.mark("y", "end", "fail")
		w.pass(10 * time.Second)
		w.settle("y", "R")
		w.pass(time.Second)
		w.promote("y")
		w.claim("y", "n1-a")
		w.finish("y", "C")
	}},
	"a refused id that nobody has": {Linearizing, func(w *world) {
		w.call("enqueue", "x", history.Fail, func(op *history.Op) { op.Chosen, op.Error = true, exists })
		w.h.Ops[len(w.h.Ops)-1].Error = exists
	}},
	"a chosen id that is accepted twice": {Linearizing, func(w *world) {
		chosen := func(op *history.Op) { op.Chosen = true }
		w.call("enqueue", "x", history.OK, chosen)
		w.pass(time.Second)
		w.call("enqueue", "x", history.OK, chosen)
	}},
	"a revival that the log does not know": {Linearizing, func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "D")
		w.call("revive", "x", history.OK, nil)
	}},
}

func TestAHistoryThatBreaksARuleFailsByThatRule(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range broken {
		seen[c.rule] = true
	}
	for _, rule := range Names() {
		if !seen[rule] {
			t.Errorf("no history here breaks rule %q", rule)
		}
	}
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.once("before", "n3-c")
			c.do(w)
			h := w.h
			if h.Final == nil {
				h = w.history()
			}
			v := Judge(h)
			if got := ruled(t, v, c.rule); got.Verdict != Fail || v.Verdict != Fail {
				t.Errorf("rule %s is %s, the whole is %s: %q", c.rule, got.Verdict, v.Verdict, v.Why)
			}
		})
	}
}
