package sweeper

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// lives reports whether a session is one in Redis.
func (w *world) lives(session string) bool {
	w.t.Helper()
	_, ok, err := w.client.LastBeat(w.ctx, session)
	w.must(err)
	return ok
}

func TestTheTwoWitnessRule(t *testing.T) {
	for name, tt := range map[string]struct {
		beats   bool          // it goes on beating
		witness bool          // somebody says that it is dead
		alive   time.Duration // then it is still a session
		dead    time.Duration // and then no more; 0: never
	}{
		"silence and a witness kill after silence":       {witness: true, alive: 1900 * ms, dead: 2700 * ms},
		"silence alone kills after a lease":              {alive: 14900 * ms, dead: 16500 * ms},
		"a witness alone kills nobody":                   {beats: true, witness: true, alive: time.Minute},
		"neither silence nor a witness is the usual way": {beats: true, alive: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				n := w.node("n1-a").start()
				other := w.node("n2-b")
				w.pass(5 * time.Second)
				if tt.beats {
					other.start()
				} else {
					w.register("n2-b")
				}
				if tt.witness {
					n.witness.dead.Store("n2-b", true)
				}
				w.pass(tt.alive)
				if !w.lives("n2-b") {
					t.Fatalf("dead after %v", tt.alive)
				}
				if tt.dead == 0 {
					return
				}
				w.pass(tt.dead - tt.alive)
				if w.lives("n2-b") {
					t.Errorf("alive after %v", tt.dead)
				}
				if n.Stats().Condemned != 1 || n.log.count("condemned node n2") != 1 {
					t.Errorf("%+v\n%s", n.Stats(), n.log)
				}
			})
		})
	}
}

// Redis away for a minute: no beat of anybody changes, and nobody is condemned.
func TestAnOutageCondemnsNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := []*node{w.node("n1-a"), w.node("n2-b"), w.node("n3-c")}
		for _, n := range nodes {
			for _, other := range nodes {
				n.witness.dead.Store(other.o.Session, true) // the worst witness there is
			}
			n.start()
		}
		w.pass(5 * time.Second)
		for _, n := range nodes {
			n.heart.breakBy(func(string) error { return errors.New("connection refused") })
			n.line.breakBy(func(string) error { return errors.New("connection refused") })
		}
		w.pass(time.Minute)
		for _, n := range nodes {
			n.heart.breakBy(nil)
			n.line.breakBy(nil)
		}
		w.pass(10 * time.Second)
		for _, n := range nodes {
			if s := n.Stats(); s.Condemned != 0 || !w.lives(n.o.Session) {
				t.Errorf("%s: %+v", n.o.Session, s)
			}
		}
	})
}

// The beat that was silent is the one that is named: a session that comes back
// while the witness is being heard lives.
func TestASessionThatComesBackMeanwhileLives(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a")
		n.o.Witness = testimony(func() bool {
			w.register("n2-b")
			return true
		})
		n.start()
		w.register("n2-b")
		w.pass(10 * time.Second)
		if !w.lives("n2-b") || n.Stats().Condemned != 0 {
			t.Errorf("it is dead: %+v", n.Stats())
		}
	})
}

type testimony func() bool

func (f testimony) Testify(context.Context, string) bool { return f() }

// A witness that hangs holds up neither other trials nor the sweeps.
func TestAWitnessThatHangsHoldsUpNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a")
		n.o.Witness = hanging{}
		n.start()
		w.register("n2-b")
		w.pass(5 * time.Second)
		w.register("n3-c")
		id := w.enqueue("q", 1, queue.JobOptions{Delay: 100 * ms})[0]
		w.pass(2700 * ms)
		if w.lives("n3-c") || !w.lives("n2-b") {
			t.Errorf("n2 lives: %v, want true; n3 lives: %v, want false", w.lives("n2-b"), w.lives("n3-c"))
		}
		if got := w.state("q", id); got != queue.Waiting {
			t.Errorf("the job is %s", got)
		}
	})
}

// hanging knows of n3 at once and never of anybody else.
type hanging struct{}

func (hanging) Testify(ctx context.Context, session string) bool {
	if session == "n3-c" {
		return true
	}
	<-ctx.Done()
	return false
}

// The sweeper is killed while it holds jobs: the next one has its lock and its
// jobs as soon as the silence is over.
func TestTheDeathOfTheSweeper(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first := w.node("n1-a").start()
		w.pass(2*time.Second + 100*ms) // so they see each beat of the first 0.1 s later
		second, third := w.node("n2-b").start(), w.node("n3-c").start()
		w.pass(2 * time.Second)
		ids := w.enqueue("q", 7, queue.JobOptions{})
		w.claim("n1-a", "q", 7)
		w.pass(time.Second + 100*ms)
		second.witness.dead.Store("n1-a", true)
		third.witness.dead.Store("n1-a", true)
		killed := time.Now()
		first.kill()
		w.pass(time.Until(killed.Add(2100 * ms)))
		if a, b := second.Stats().Sweeping, third.Stats().Sweeping; a == b {
			t.Fatalf("after 2.1 s n2 sweeps: %v, n3 sweeps: %v", a, b)
		}
		for _, id := range ids {
			if got := w.state("q", id); got != queue.Waiting {
				t.Errorf("%s is %s", id, got)
			}
		}
		if lines := second.log.count("recovered 7 jobs of node n1") + third.log.count("recovered 7 jobs of node n1"); lines != 1 {
			t.Errorf("%d lines about it:\n%s\n%s", lines, second.log, third.log)
		}
	})
}

// A candidate leaves everybody but the holder of the lock to the sweeper.
func TestACandidateJudgesOnlyTheHolderOfTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.node("n1-a").start()
		w.pass(2 * time.Second)
		n := w.node("n2-b")
		n.witness.dead.Store("n3-c", true)
		n.start()
		w.register("n3-c")
		w.pass(10 * time.Second)
		if !w.lives("n3-c") {
			t.Error("the candidate condemned it")
		}
	})
}
