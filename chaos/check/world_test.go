package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

// apart is what Redis's clock shows more than this machine's, in µs.
const apart = 1_700_000_000_000_000

// world makes histories: each of its calls does what a correct herd would do, and
// step, call, mark and strike write whatever they are told.
type world struct {
	h       *history.History
	t       int64 // now
	index   map[string]int64
	jobs    map[string]*work
	totals  map[string]int64
	ops     int
	turn    map[string]int64
	fence   int64
	epoch   int64
	sweeper string
	faults  int
	gone    map[string]bool
	settled bool
}

// work is a job of a world.
type work struct {
	life.Job
	op, sum string
	chosen  bool
}

func newWorld() *world {
	w := &world{
		h: &history.History{}, t: 1_000_000, index: map[string]int64{}, jobs: map[string]*work{}, totals: map[string]int64{},
		turn: map[string]int64{}, fence: 100, gone: map[string]bool{}, settled: true,
	}
	w.h.Run = history.Run{
		Durable: "appendfsync always",
		Settings: history.Settings{
			Nodes: 3, Workers: 4, Queues: []string{"q"}, Silence: 2 * time.Second, Lease: 15 * time.Second,
			Drain: 5 * time.Second, Settle: time.Minute, Heartbeat: 500 * time.Millisecond,
		},
	}
	for _, s := range []string{"n1-a", "n2-b", "n3-c"} {
		w.join(s)
	}
	w.raise("n1-a")
	return w
}

func (w *world) pass(d time.Duration) { w.t += d.Microseconds() }

// ms is Redis's clock as a script sees it.
func (w *world) ms() int64 { return (w.t + apart) / 1000 }

// step appends an entry to the log of a queue.
func (w *world) step(queue, script, who string, moves ...history.Move) {
	w.t += 10
	s := history.Step{T: w.t + 20_000, Queue: queue, Index: w.index[queue], US: w.t + apart, Script: script, Who: who, Moves: moves}
	switch {
	case slices.Contains([]string{"promote", "reclaim", "trim", "repair", "raise"}, script):
		s.Epoch = w.epoch
	case queue == "q":
		w.turn[who]++
		s.Turn = w.turn[who]
	}
	w.index[queue]++
	w.h.Steps = append(w.h.Steps, s)
}

func (w *world) last() *history.Step { return &w.h.Steps[len(w.h.Steps)-1] }

func (w *world) join(session string) {
	w.step("q", "exchange", session, history.Move{What: history.Join, ID: session})
}

func (w *world) raise(session string) {
	w.epoch, w.sweeper = w.t+apart, session
	w.step(life.Cluster, "raise", "", history.Move{What: history.Raise, ID: session})
}

// call writes both lines of a call.
func (w *world) call(verb, id, phase string, change func(*history.Op)) history.Op {
	w.ops++
	op := history.Op{
		T: w.t, Phase: history.Invoke, Client: "c", N: w.ops, Verb: verb, By: "library", Queue: "q", Sum: fmt.Sprintf("sum%d", w.ops),
	}
	if change != nil {
		change(&op)
	}
	if op.Chosen {
		op.ID = id
	}
	w.h.Ops = append(w.h.Ops, op)
	if phase != "" {
		end := op
		end.T, end.Phase, end.ID = w.t+2000, phase, id
		w.h.Ops = append(w.h.Ops, end)
	}
	return op
}

// enqueue stores a job of two attempts.
func (w *world) enqueue(id string, delay time.Duration) *work { return w.accept(id, delay, history.OK) }

func (w *world) accept(id string, delay time.Duration, phase string) *work {
	op := w.call("enqueue", id, phase, nil)
	j := &work{op: fmt.Sprintf("%s/%d", op.Client, op.N), sum: op.Sum}
	j.Max, j.Place = 2, life.Waiting
	w.t += 500
	if delay > 0 {
		j.Place, j.Due = life.Delayed, (w.t+10+apart)/1000+delay.Milliseconds()
	}
	w.jobs[id] = j
	w.totals["enqueued"]++
	w.step("q", "enqueue", "c", history.Move{What: history.Store, ID: id, To: j.Place, Due: j.Due, Max: j.Max})
	w.t += 2000
	return j
}

func (w *world) promote(id string) {
	j := w.jobs[id]
	j.Place = life.Waiting
	w.totals["promoted"]++
	w.step("q", "promote", "", history.Move{What: history.Promote, ID: id, From: life.Delayed, To: life.Waiting, Due: j.Due})
}

// claim gives a job to a session, and its handler starts.
func (w *world) claim(id, session string) {
	w.grant(id, session)
	w.t += 300
	w.start(id)
}

func (w *world) grant(id, session string) {
	j := w.jobs[id]
	w.fence++
	j.Place, j.Fence, j.Session = life.Active, w.fence, session
	w.totals["claimed"]++
	w.step("q", "exchange", session, w.claimMove(id))
}

func (w *world) claimMove(id string) history.Move {
	j := w.jobs[id]
	return history.Move{What: history.Claim, ID: id, From: life.Waiting, To: life.Active, Fence: j.Fence, Session: j.Session, Spent: j.Spent}
}

func (w *world) mark(id, what, outcome string) *history.Mark {
	j := w.jobs[id]
	w.t++
	m := history.Mark{
		T: w.t, E: what, ID: id, Queue: "q", Op: j.op, Node: nodeOf(j.Session), PID: pidOf(j.Session), Attempt: j.Spent + 1, Fence: j.Fence,
		Outcome: outcome,
	}
	if what == "start" {
		m.Sum = j.sum
	}
	w.h.Marks = append(w.h.Marks, m)
	return &w.h.Marks[len(w.h.Marks)-1]
}

func pidOf(session string) (n int) {
	for _, c := range session {
		n = n*31%9973 + int(c)
	}
	return n
}

func (w *world) start(id string) { w.mark(id, "start", "") }

// finish ends a handler and settles.
func (w *world) finish(id, verb string) {
	w.mark(id, "end", map[string]string{"C": "ok", "R": "fail", "D": "discard", "S": "snooze", "L": "cut"}[verb])
	w.settle(id, verb)
}

func (w *world) settle(id, verb string) {
	j := w.jobs[id]
	m := history.Move{What: history.Settle, ID: id, From: life.Active, Fence: j.Fence, Session: j.Session, Verb: verb}
	switch verb {
	case "C":
		w.totals["completed"]++
	case "R":
		w.totals["failed"]++
		w.totals["retried"]++
		j.Spent++
	case "D":
		w.totals["failed"]++
		w.totals["dead"]++
		j.Spent++
	}
	if m.To = map[string]string{"C": "completed", "R": "delayed", "D": "dead", "S": "delayed", "L": "waiting", "U": "delayed"}[verb]; m.To == life.Delayed {
		j.Due = (w.t+10+apart)/1000 + 100
		m.Due = j.Due
	}
	if j.chosen && verb == "C" {
		j.Until = w.ms() + memory.Milliseconds()
		m.Until = j.Until
	}
	j.Place, m.Spent = m.To, j.Spent
	w.step("q", "exchange", j.Session, m)
}

// strike writes a fault that hits one target, with what its session holds.
func (w *world) strike(kind, signal, session string, lasts time.Duration) *history.Strike {
	w.faults++
	s := history.Strike{T: w.t, Phase: history.Begin, N: w.faults, Kind: kind, OK: false}
	hit := s
	hit.Phase, hit.Signal, hit.Target, hit.Session = history.Hit, signal, nodeOf(session), session
	hit.Sweeper = session == w.sweeper
	if session == "" {
		hit.Target = "redis"
	}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		if j := w.jobs[id]; j.Place == life.Active && j.Session == session {
			hit.Held = append(hit.Held, "q/"+id)
		}
	}
	heal, end := s, s
	heal.T, heal.Phase = w.t+lasts.Microseconds(), history.Heal
	end.T, end.Phase = heal.T+1000, history.End
	well := history.Strike{T: w.t - 1, Phase: history.Health, N: w.faults, Kind: kind, OK: true}
	w.h.Strikes = append(w.h.Strikes, well, s, hit, heal, end)
	return &w.h.Strikes[len(w.h.Strikes)-3]
}

func (w *world) condemn(session string) {
	w.step(life.Cluster, "condemn", "", history.Move{What: history.Condemn, ID: session})
}

func (w *world) bye(session string) {
	w.step("q", "exchange", session, history.Move{What: history.Bye, ID: session})
	w.gone[session] = true
	w.step(life.Cluster, "beat", session, history.Move{What: history.Bye, ID: session})
}

// reclaim takes all that a session holds.
func (w *world) reclaim(session string) {
	var moves []history.Move
	if !w.gone[session] {
		w.gone[session] = true
		moves = append(moves, history.Move{What: history.Gone, ID: session})
	}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		if j := w.jobs[id]; j.Place == life.Active && j.Session == session {
			moves = append(moves, w.stall(id))
		}
	}
	w.step("q", "reclaim", "", moves...)
}

func (w *world) stall(id string) history.Move {
	j := w.jobs[id]
	j.Spent++
	j.Stalls++
	w.totals["stalled"]++
	m := history.Move{What: history.Reclaim, ID: id, From: life.Active, Fence: j.Fence, Session: j.Session, Spent: j.Spent}
	switch {
	case j.Spent >= j.Max:
		w.totals["dead"]++
		j.Place = life.Dead
	case j.Stalls == 1:
		j.Place = life.Waiting
	default:
		j.Place, j.Due = life.Delayed, (w.t+10+apart)/1000+int64(j.Spent*j.Spent)*1000
		m.Due = j.Due
	}
	m.To = j.Place
	return m
}

// die is a kill of a session, until its jobs wait again.
func (w *world) die(session string) {
	w.strike("kill", "KILL", session, 0)
	w.pass(2200 * time.Millisecond)
	if session == w.sweeper {
		w.raise("n3-c")
	}
	w.condemn(session)
	w.reclaim(session)
}

// forgetsClaim has a session claim and run a new job, and Redis set back to right
// before the claim.
func (w *world) forgetsClaim(id, session string) {
	w.h.Run.Durable, w.h.Run.Loss.Window = "unknown", 10*time.Second
	w.enqueue(id, 0)
	w.claim(id, session)
	w.pass(time.Second)
	w.strike("rollback", "", "", time.Second)
	w.pass(time.Second)
	w.takeBack("q", 1)
	w.totals["claimed"]--
	w.jobs[id].Place = life.Waiting
	w.fence--
}

// takeBack makes Redis lose the last entries of a log.
func (w *world) takeBack(queue string, entries int64) {
	w.index[queue] -= entries
	w.h.Steps = append(w.h.Steps, history.Step{T: w.t, Queue: queue, Index: w.index[queue], Back: true})
}

// history ends the run and returns what it left.
func (w *world) history() *history.History {
	q := history.QueueFinal{
		Places: map[string][]string{}, Tokens: map[string]string{}, Bodies: map[string]string{}, Sums: map[string]string{},
		Tries: map[string]string{}, Totals: w.totals,
	}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		j := w.jobs[id]
		if place := j.Kept(); place != life.Nowhere {
			q.Places[place] = append(q.Places[place], id)
			q.Bodies[id] = "1 chaos.work 2 5 0"
			if place == life.Dead {
				q.Sums[id], q.Tries[id] = j.sum, fmt.Sprintf("%d %d 0 1", j.Spent, j.Stalls)
			}
		}
	}
	w.pass(time.Second)
	w.h.Final = &history.Final{T: w.t, Settled: w.settled, Waited: 1000, Queues: map[string]history.QueueFinal{"q": q}}
	var ticks []history.Tick
	for t := int64(0); t < w.t; t += 1_000_000 {
		ticks = append(ticks, history.Tick{T: t, After: t + 100, US: t + 50 + apart})
	}
	w.h.Clock = history.NewClock(ticks)
	return w.h
}
