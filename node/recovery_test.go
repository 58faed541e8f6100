package node

import (
	"slices"
	"testing"
	"time"
)

// The bars of time stand in one test that nothing else runs beside.
func TestRecoveryIsFast(t *testing.T) {
	t.Run("a killed node's jobs run elsewhere within 3 s", func(t *testing.T) {
		t.Parallel()
		h := realHerd(t)
		nodes := h.trio(order{})
		victim := nodes[notSweeper(h, nodes)]
		h.killWithJobs(victim, nodes, 3*time.Second)
	})
	t.Run("the sweeper's jobs run elsewhere within 3 s of its death", func(t *testing.T) {
		t.Parallel()
		h := realHerd(t)
		nodes := h.trio(order{})
		victim := nodes[sweeperOf(h, nodes)]
		was := victim.name
		h.killWithJobs(victim, nodes, 3*time.Second)
		eventually(t, patience, "another sweeper", func() bool { s := h.sweeper(); return s != "" && s != was })
	})
}

// trio starts three nodes as processes and waits until they know each other.
func (h *herd) trio(o order) (nodes []*child) {
	h.t.Helper()
	for _, name := range []string{"n1", "n2", "n3"} {
		o.Name = name
		nodes = append(nodes, h.spawn(o))
	}
	if !o.Blocked {
		h.awaitHerd(3)
	} else {
		eventually(h.t, patience, "three nodes and a sweeper", func() bool { return len(h.nodes()) == 3 && h.sweeper() != "" })
	}
	return nodes
}

func sweeperOf(h *herd, nodes []*child) int {
	name := h.sweeper()
	return slices.IndexFunc(nodes, func(c *child) bool { return c.name == name })
}

func notSweeper(h *herd, nodes []*child) int { return (sweeperOf(h, nodes) + 1) % len(nodes) }

// killWithJobs kills a node in the middle of its jobs and returns how long it
// took until the last of them ran elsewhere.
func (h *herd) killWithJobs(victim *child, nodes []*child, most time.Duration) time.Duration {
	h.t.Helper()
	h.doMany(15, work{Sleep: time.Minute})
	eventually(h.t, patience, "all jobs run", func() bool { return len(h.ledger.of("start", "", "")) == 15 })
	held := h.ledger.holds(victim.name)
	if len(held) == 0 {
		h.t.Fatalf("%s has no job:\n%s", victim.name, h.ledger)
	}
	killed := time.Now()
	victim.kill()
	eventually(h.t, most+patience, "the jobs run elsewhere", func() bool { return len(h.ledger.of("start", "", "")) == 15+len(held) })
	var last time.Time
	for _, id := range held {
		starts := h.ledger.starts(id)
		if len(starts) != 2 || starts[1].attempt != 2 {
			h.t.Fatalf("job %s: %v, want a second attempt elsewhere", id, starts)
		}
		if at := starts[1].at; at.After(last) {
			last = at
		}
	}
	took := last.Sub(killed)
	h.t.Logf("%d jobs of %s ran elsewhere %v after its death", len(held), victim.name, took.Round(time.Millisecond))
	if took > most {
		h.t.Errorf("recovery took %v, want at most %v", took, most)
	}
	return took
}
