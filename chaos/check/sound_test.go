package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

// sound are histories of correct herds to which something happened.
var sound = map[string]func(w *world){
	"nothing happens": func(w *world) {},
	"a job fails, is tried again and succeeds": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "R")
		w.pass(200 * time.Millisecond)
		w.promote("x")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"a job fails until it is dead, is revived and succeeds": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "D")
		w.pass(time.Second)
		w.call("revive", "x", history.OK, nil)
		w.revive("x")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"a delayed job is promoted when it is due": func(w *world) {
		w.enqueue("x", time.Second)
		w.pass(time.Second)
		w.promote("x")
		w.once("x2", "n2-b")
		w.claim("x", "n1-a")
		w.finish("x", "C")
	},
	"a job snoozes and is handed back, which spends nothing": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.finish("x", "S")
		w.pass(time.Second)
		w.promote("x")
		w.claim("x", "n1-a")
		w.finish("x", "L")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"a node is killed in the middle of a job": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.die("n1-a")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"a job kills two nodes and is put aside before it is dead": func(w *world) {
		w.enqueue("x", 0).Max = 3
		w.last().Moves[0].Max = 3
		w.claim("x", "n1-a")
		w.die("n1-a")
		w.claim("x", "n2-b")
		w.die("n2-b")
		w.pass(5 * time.Second)
		w.promote("x")
		w.later("x", "n3-c")
		w.pass(time.Second)
		w.promote("x")
		w.claim("x", "n3-c")
		w.join("n1-d")
		w.die("n3-c")
		w.once("y", "n1-d")
	},
	"a node stops beyond the lease and its late result is refused": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		fence := w.jobs["x"].Fence
		w.strike("stop", "STOP", "n1-a", 20*time.Second)
		w.pass(16 * time.Second)
		w.condemn("n1-a")
		w.reclaim("n1-a")
		w.claim("x", "n2-b")
		w.finish("x", "C")
		w.pass(4 * time.Second)
		w.late("x", "n1-a", fence, 1)
		w.step("q", "exchange", "n1-a", history.Move{What: history.Stale, ID: "x", Fence: fence, Session: "n1-a", Verb: "C"})
		w.totals["stale"]++
	},
	"a node sleeps between a claim and its handler": func(w *world) {
		w.enqueue("x", 0)
		w.grant("x", "n1-a")
		fence := w.jobs["x"].Fence
		w.strike("stop", "STOP", "n1-a", 20*time.Second)
		w.pass(16 * time.Second)
		w.condemn("n1-a")
		w.reclaim("n1-a")
		w.claim("x", "n2-b")
		w.finish("x", "C")
		w.pass(5 * time.Second)
		w.lateStart("x", "n1-a", fence, 1)
	},
	"Redis is paused for 10 s and nobody is condemned": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.strike("redis-pause", "", "", 10*time.Second)
		w.pass(10 * time.Second)
		w.mark("x", "end", "cut").Cause = "doubt"
		w.settle("x", "L")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"a deaf handler runs on behind its hand-back while Redis is away": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.strike("redis-kill", "", "", 12*time.Second)
		w.pass(12 * time.Second)
		fence := w.jobs["x"].Fence
		w.settle("x", "L")
		w.claim("x", "n2-b")
		w.late("x", "n1-a", fence, 1)
		w.finish("x", "C")
	},
	"a handler runs on when its time is over": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		fence := w.jobs["x"].Fence
		w.settle("x", "R")
		w.pass(time.Second)
		w.promote("x")
		w.claim("x", "n2-b")
		w.late("x", "n1-a", fence, 1).Cause = "timeout"
		w.finish("x", "C")
	},
	"a graceful stop hands back": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.strike("term", "TERM", "n1-a", time.Second)
		w.mark("x", "end", "cut").Cause = "shutdown"
		w.settle("x", "L")
		w.bye("n1-a")
		w.reclaim("n1-a")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"a node is killed while it drains": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.strike("term-kill", "TERM", "n1-a", time.Second)
		w.pass(100 * time.Millisecond)
		w.die("n1-a")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"a node drains while Redis is away": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.strike("term", "TERM", "n1-a", time.Second)
		w.strike("redis-kill", "", "", 10*time.Second)
		w.pass(12 * time.Second)
		w.condemn("n1-a")
		w.reclaim("n1-a")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"a call without an answer stored its job": func(w *world) {
		w.accept("x", 0, "")
		w.claim("x", "n1-a")
		w.finish("x", "C")
	},
	"a call without an answer stored nothing": func(w *world) { w.call("enqueue", "x", "", nil) },
	"a call without an answer stored a job that never ran by its name": func(w *world) {
		w.accept("x", 0, "").op = ""
		w.grant("x", "n1-a")
		w.settle("x", "C")
	},
	"a chosen id is repeated after an unknown result and refused": func(w *world) {
		chosen := func(op *history.Op) { op.Chosen = true }
		op := w.call("enqueue", "x", history.Unknown, chosen)
		w.t += 500
		w.jobs["x"] = &work{Job: life.Job{Max: 2, Place: life.Waiting}, op: "c/2", sum: op.Sum, chosen: true}
		w.totals["enqueued"]++
		w.step("q", "enqueue", "c", history.Move{What: history.Store, ID: "x", To: life.Waiting, Max: 2})
		w.pass(time.Second)
		w.call("enqueue", "x", history.Fail, chosen)
		w.h.Ops[len(w.h.Ops)-1].Error = exists
		w.step("q", "enqueue", "c", history.Move{What: history.Exists, ID: "x"})
		w.claim("x", "n1-a")
		w.finish("x", "C")
	},
	"a chosen id is used again when it was forgotten": func(w *world) {
		w.chosen("x")
		w.claim("x", "n1-a")
		w.finish("x", "C")
		w.pass(memory + time.Second)
		w.step("q", "trim", "", history.Move{What: history.Forget, ID: "x", From: life.Completed})
		w.chosen("x")
		w.claim("x", "n1-a")
		w.finish("x", "C")
	},
	"a delayed job is moved to another time": func(w *world) {
		w.enqueue("x", 10*time.Second)
		w.call("reschedule", "x", history.OK, nil)
		w.t += 500
		j := w.jobs["x"]
		j.Due = w.ms() + 500
		w.step("q", "reschedule", "c", history.Move{What: history.Reschedule, ID: "x", From: life.Delayed, To: life.Delayed, Due: j.Due})
		w.pass(time.Second)
		w.promote("x")
		w.claim("x", "n1-a")
		w.finish("x", "C")
	},
	"Redis is set back, and finished work runs again": func(w *world) {
		w.h.Run.Durable, w.h.Run.Loss.Window = "unknown", 10*time.Second
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		before := w.jobs["x"].Job
		w.finish("x", "C")
		w.pass(time.Second)
		w.strike("rollback", "", "", time.Second)
		w.pass(time.Second)
		w.takeBack("q", 1)
		w.totals["completed"]--
		w.jobs["x"].Job = before
		w.settle("x", "L") // found by a roll call
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"Redis is set back, and another session gets the same fence": func(w *world) {
		w.forgetsClaim("x", "n1-a")
		fence := w.jobs["x"].Fence
		w.claim("x", "n2-b")
		w.finish("x", "C")
		w.late("x", "n1-a", fence, 1)
		w.step("q", "exchange", "n1-a", history.Move{What: history.Stale, ID: "x", Fence: fence, Session: "n1-a", Verb: "C"})
		w.totals["stale"]++
	},
	"Redis is set back, and the same session gets the same token": func(w *world) {
		w.forgetsClaim("x", "n1-a")
		w.claim("x", "n1-a")
		w.mark("x", "end", "cut").Cause = "doubt" // of the first run, which the roll call ends
		w.finish("x", "C")
	},
	"Redis is set back, and the second run has the lower fence": func(w *world) {
		w.fence += 10
		w.forgetsClaim("x", "n1-a")
		fence := w.jobs["x"].Fence
		w.fence -= 5
		w.claim("x", "n2-b")
		w.late("x", "n1-a", fence, 1)
		w.finish("x", "C")
	},
	"Redis loses a job within its window": func(w *world) {
		w.h.Run.Durable, w.h.Run.Loss.Window = "failover", 2*time.Second
		w.enqueue("x", 0)
		w.pass(time.Second)
		w.strike("failover", "", "", time.Second)
		w.pass(time.Second)
		w.takeBack("q", 1)
		w.totals["enqueued"]--
		delete(w.jobs, "x")
	},
	"Redis is emptied": func(w *world) {
		w.h.Run.Loss.Window = time.Hour
		w.once("x", "n1-a")
		w.enqueue("y", 0)
		w.enqueue("z", 0)
		w.pass(time.Second)
		w.strike("flush-all", "", "", 0)
		w.pass(time.Second)
		w.takeBack("q", w.index["q"])
		w.takeBack(life.Cluster, w.index[life.Cluster])
		clear(w.jobs)
		w.totals = map[string]int64{}
		w.call("enqueue", "n", history.OK, nil) // before the log was kept again
		w.jobs["n"] = &work{Job: life.Job{Place: life.Waiting}, op: "c/5", sum: "sum5"}
		w.t += 5000
		w.raise("n2-b")
		w.claim("n", "n3-c")
		w.finish("n", "C")
		w.once("m", "n1-a")
	},
	"a full Redis refuses enqueues, and settles": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.strike("redis-full", "", "", 8*time.Second)
		w.pass(time.Second)
		w.call("enqueue", "", history.Fail, nil)
		w.finish("x", "C")
		w.pass(10 * time.Second)
	},
	"a session of a node that is cut off is condemned": func(w *world) {
		w.enqueue("x", 0)
		w.claim("x", "n1-a")
		w.strike("cut", "", "n1-a", 10*time.Second)
		w.pass(4 * time.Second)
		w.condemn("n1-a")
		w.reclaim("n1-a")
		w.claim("x", "n2-b")
		w.finish("x", "C")
	},
	"a storm kills a session before anybody knew it": func(w *world) {
		w.join("n1-d")
		w.strike("storm", "KILL", "n1-d", 0).Session = ""
		w.pass(3 * time.Second)
		w.condemn("n1-d")
		w.reclaim("n1-d")
	},
	"an older sweeper acts before a queue has seen the new one": func(w *world) {
		old := w.epoch
		w.raise("n2-b")
		fresh := w.epoch
		w.epoch = old
		w.step("q", "trim", "")
		w.epoch = fresh
		w.step("q", "trim", "")
	},
	"nodes stop when all is done": func(w *world) {
		w.once("x", "n1-a")
		w.history()
		w.bye("n1-a")
		w.bye("n2-b")
		w.condemn("n3-c")
	},
}

func (w *world) revive(id string) {
	j := w.jobs[id]
	j.Spent, j.Stalls, j.Place = 0, 0, life.Waiting
	w.totals["revived"]++
	w.step("q", "revive", "c", history.Move{What: history.Revive, ID: id, From: life.Dead, To: life.Waiting})
}

func (w *world) later(id, session string) {
	j := w.jobs[id]
	j.Due, j.Place = (w.t+10+apart)/1000+1000, life.Delayed
	w.step("q", "exchange", session, history.Move{What: history.Later, ID: id, From: life.Waiting, To: life.Delayed, Due: j.Due})
}

// lateStart is a start of a claim that is not the current one.
func (w *world) lateStart(id, session string, fence int64, attempt int) {
	now := w.jobs[id].Job
	w.jobs[id].Session, w.jobs[id].Fence = session, fence
	w.mark(id, "start", "").Attempt = attempt
	w.jobs[id].Job = now
}

// late is the end of such a one.
func (w *world) late(id, session string, fence int64, attempt int) *history.Mark {
	now := w.jobs[id].Job
	w.jobs[id].Session, w.jobs[id].Fence = session, fence
	m := w.mark(id, "end", "ok")
	m.Attempt = attempt
	w.jobs[id].Job = now
	return m
}

// chosen enqueues a job whose id the caller chose.
func (w *world) chosen(id string) {
	op := w.call("enqueue", id, history.OK, func(op *history.Op) { op.Chosen = true })
	w.t += 500
	w.jobs[id] = &work{Job: life.Job{Max: 2, Place: life.Waiting}, op: fmt.Sprintf("c/%d", op.N), sum: op.Sum, chosen: true}
	w.totals["enqueued"]++
	w.step("q", "enqueue", "c", history.Move{What: history.Store, ID: id, To: life.Waiting, Max: 2})
	w.pass(10 * time.Millisecond)
}

func TestAHistoryOfACorrectHerdPasses(t *testing.T) {
	t.Parallel()
	for name, do := range sound {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.once("before", "n3-c")
			do(w)
			h := w.h
			if h.Final == nil {
				h = w.history()
			}
			if v := Judge(h); v.Verdict != Pass {
				t.Errorf("the verdict is %s: %q", v.Verdict, v.Why)
			}
		})
	}
}
