package check

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

// herd drives a world at random, as a correct herd under faults would.
type herd struct {
	*world
	rand   *rand.Rand
	nodes  []string
	starts int
	made   int
}

func newHerd(seed uint64) *herd {
	return &herd{world: newWorld(), rand: rand.New(rand.NewPCG(seed, 1)), nodes: []string{"n1-a", "n2-b", "n3-c"}}
}

// in returns the ids of the jobs in a place, in order.
func (h *herd) in(place string) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(h.jobs)) {
		if h.jobs[id].Place == place {
			ids = append(ids, id)
		}
	}
	return ids
}

// any draws one of some ids.
func (h *herd) any(ids []string) (string, bool) {
	if len(ids) == 0 {
		return "", false
	}
	return ids[h.rand.IntN(len(ids))], true
}

func (h *herd) free() (session string, ok bool) {
	s := h.nodes[h.rand.IntN(len(h.nodes))]
	n := 0
	for _, id := range h.in(life.Active) {
		if h.jobs[id].Session == s {
			n++
		}
	}
	return s, n < h.h.Run.Settings.Workers
}

// act does one thing, if it can be done now.
func (h *herd) act() {
	h.pass(time.Duration(h.rand.IntN(50)) * time.Millisecond)
	switch h.rand.IntN(14) {
	case 0, 1, 2:
		h.made++
		delay := time.Duration(max(0, h.rand.IntN(800)-400)) * time.Millisecond
		h.accept(fmt.Sprintf("j%d", h.made), delay, []string{history.OK, history.OK, history.Unknown, ""}[h.rand.IntN(4)])
	case 3, 4, 5, 6:
		h.work()
	case 7, 8, 9, 10:
		if id, ok := h.any(h.in(life.Active)); ok {
			h.end(id)
		}
	case 11:
		h.due()
	case 12:
		if id, ok := h.any(h.in(life.Dead)); ok {
			h.call("revive", id, history.OK, nil)
			h.t += 300
			h.revive(id)
			h.t += 2000
		}
	case 13:
		h.trouble()
	}
}

func (h *herd) work() {
	session, ok := h.free()
	id, any := h.any(h.in(life.Waiting))
	switch {
	case !ok || !any:
	case h.jobs[id].Stalls >= 2 && h.rand.IntN(2) == 0:
		h.later(id, session)
	default:
		h.claim(id, session)
	}
}

func (h *herd) end(id string) {
	verb := []string{"C", "C", "C", "R", "S", "L", "D"}[h.rand.IntN(7)]
	if j := h.jobs[id]; verb == "R" && j.Spent+1 >= j.Max {
		verb = "D"
	}
	h.finish(id, verb)
}

func (h *herd) due() {
	for _, id := range h.in(life.Delayed) {
		if h.jobs[id].Due <= h.ms() {
			h.promote(id)
		}
	}
}

// trouble hits one node, which comes back with a new session.
func (h *herd) trouble() {
	i := h.rand.IntN(len(h.nodes))
	s := h.nodes[i]
	switch h.rand.IntN(4) {
	case 0:
		h.die(s)
	case 1:
		h.strike("stop", "STOP", s, time.Second)
		h.pass(time.Second)
		return
	case 2:
		h.strike("redis-pause", "", "", 3*time.Second)
		h.pass(3 * time.Second)
		return
	case 3:
		h.strike("term", "TERM", s, time.Second)
		for _, id := range h.in(life.Active) {
			if h.jobs[id].Session == s {
				h.mark(id, "end", "cut").Cause = "shutdown"
				h.settle(id, "L")
			}
		}
		h.bye(s)
	}
	if s == h.sweeper {
		h.raise(h.nodes[(i+1)%3])
	}
	h.starts++
	h.nodes[i] = fmt.Sprintf("%s-%d", nodeOf(s), h.starts)
	h.join(h.nodes[i])
}

// rest ends all that lives.
func (h *herd) rest() {
	for len(h.in(life.Waiting))+len(h.in(life.Delayed))+len(h.in(life.Active)) > 0 {
		h.pass(500 * time.Millisecond)
		h.due()
		for _, id := range h.in(life.Waiting) {
			if session, ok := h.free(); ok {
				h.claim(id, session)
			}
		}
		for _, id := range h.in(life.Active) {
			h.finish(id, "C")
		}
	}
}

func TestLivesThatACorrectHerdLeadsNeverBreakARule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newHerd(rapid.Uint64().Draw(t, "seed"))
		for range rapid.IntRange(0, 150).Draw(t, "acts") {
			h.act()
		}
		h.rest()
		if v := Judge(h.history()); v.Verdict != Pass {
			t.Fatalf("the verdict is %s: %q", v.Verdict, v.Why)
		}
	})
}

func TestALifeThatIsTornBreaksARule(t *testing.T) {
	t.Parallel()
	// Without one of its moves a history must not look whole, whatever the move.
	tried := 0
	for seed := range uint64(40) {
		h := newHerd(seed)
		for range 60 {
			h.act()
		}
		h.rest()
		whole := h.history()
		at := h.rand.IntN(len(whole.Steps))
		cut := &whole.Steps[at]
		if len(cut.Moves) != 1 || !torn[cut.Moves[0].What] {
			continue
		}
		tried++
		was := cut.Moves[0]
		cut.Moves = nil
		if v := Judge(whole); v.Verdict != Fail {
			t.Errorf("seed %d without %+v: the verdict is %s", seed, was, v.Verdict)
		}
	}
	if tried < 10 {
		t.Errorf("only %d histories were torn", tried)
	}
}

// torn are the moves that others build upon.
var torn = map[string]bool{
	history.Store: true, history.Claim: true, history.Settle: true, history.Promote: true, history.Revive: true, history.Later: true,
}

func TestALongRunIsJudgedInSeconds(t *testing.T) {
	if testing.Short() {
		t.Skip("a long history takes some seconds to make")
	}
	w := newWorld()
	w.h.Run.Settings.Workers = 10
	for i := range 20_000 {
		id := fmt.Sprintf("j%d", i)
		w.enqueue(id, 0)
		for range 3 {
			w.claim(id, "n1-a")
			w.finish(id, "S")
			w.pass(200 * time.Millisecond)
			w.promote(id)
		}
		w.claim(id, "n2-b")
		w.finish(id, "C")
	}
	h := w.history()
	before := spent(t)
	v := Judge(h)
	took := spent(t) - before
	t.Logf("%d jobs, %d steps, %d marks in %v of processor time", 20_000, len(h.Steps), len(h.Marks), took)
	if v.Verdict != Pass {
		t.Errorf("the verdict is %s: %q", v.Verdict, v.Why)
	}
	if bound := 30 * time.Second; took > bound { // 2 s, and several times that with -race
		t.Errorf("the judge took %v, over %v", took, bound)
	}
}

// spent returns the processor time of this process: how busy the machine is does
// not matter.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
