package node

import (
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The bars of time stand in one test, so that the rest of the package does not
// run beside them.
func TestRecoveryIsFast(t *testing.T) {
	t.Run("a killed node's jobs run elsewhere within 3 s", func(t *testing.T) {
		t.Parallel()
		h := realHerd(t)
		nodes := h.trio(order{})
		h.killWithJobs(h.nodeBeside(nodes), 0, 3*time.Second)
	})
	t.Run("the sweeper's jobs run elsewhere within 3 s of its death", func(t *testing.T) {
		t.Parallel()
		h := realHerd(t)
		nodes := h.trio(order{})
		victim := h.sweeperAmong(nodes)
		h.killWithJobs(victim, 0, 3*time.Second)
		eventually(t, patience, "another sweeper", func() bool { s := h.sweeper(); return s != "" && s != victim.name })
	})
	t.Run("two of three nodes die together, the sweeper among them, and the last one recovers within 3 s", func(t *testing.T) {
		t.Parallel()
		h := realHerd(t)
		nodes := h.trio(order{Workers: 30})
		sweeper, other := h.sweeperAmong(nodes), h.nodeBeside(nodes)
		ids := h.occupy(sweeper.name, work{Sleep: time.Minute})
		ids = append(ids, h.occupy(other.name, work{Sleep: time.Minute})...)
		held := append(h.ledger.holds(sweeper.name), h.ledger.holds(other.name)...)
		killed := time.Now()
		_, _ = sweeper.cmd.Process.Kill(), other.cmd.Process.Kill()
		eventually(t, patience, "the jobs run on the last node", func() bool { return len(h.ledger.of("start", "", "")) == len(ids)+len(held) })
		starts := h.ledger.of("start", "", "")
		took := starts[len(starts)-1].at.Sub(killed)
		t.Logf("%d jobs of two nodes ran elsewhere %v after their death", len(held), took.Round(time.Millisecond))
		if took > 3*time.Second {
			t.Errorf("recovery took %v, want at most 3 s", took)
		}
	})
	t.Run("a node that drains hands its jobs over within 200 ms", func(t *testing.T) {
		t.Parallel()
		soonest(t, "the job ran elsewhere", 200*time.Millisecond, handOverOfJobs)
	})
	t.Run("a sweeper that drains hands its office over within 200 ms", func(t *testing.T) {
		t.Parallel()
		soonest(t, "the next one swept", 200*time.Millisecond, handOverOfOffice)
	})
}

func TestGossipEarnsItsPlace(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	t.Run("with its ports blocked from the start a killed node's jobs come back after the lease", func(t *testing.T) {
		t.Parallel()
		h := realHerd(t)
		nodes := h.trio(order{Blocked: true, Lease: lease})
		h.killWithJobs(h.nodeBeside(nodes), lease, lease+3*time.Second)
	})
	t.Run("with its ports blocked later a killed node's jobs come back after the lease", func(t *testing.T) {
		t.Parallel()
		h := realHerd(t)
		nodes := h.trio(order{Lease: lease})
		for _, n := range nodes {
			n.signal(syscall.SIGUSR1)
		}
		h.killWithJobs(h.nodeBeside(nodes), lease, lease+3*time.Second)
	})
}

func TestStoppedNodeKeepsItsJobs(t *testing.T) {
	t.Parallel()
	for name, choose := range map[string]func(*herd, []*child) *child{
		"a node stopped for 4 s":      (*herd).nodeBeside,
		"the sweeper stopped for 4 s": (*herd).sweeperAmong,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := realHerd(t)
			victim := choose(h, h.trio(order{}))
			ids := h.occupy(victim.name, work{Sleep: 7 * time.Second})
			victim.signal(syscall.SIGSTOP)
			pass(4 * time.Second)
			victim.signal(syscall.SIGCONT)
			eventually(t, patience, "all jobs end well", func() bool { return h.queue("default").Totals.Completed == int64(len(ids)) })
			for _, id := range ids {
				if starts := h.ledger.starts(id); len(starts) != 1 {
					t.Errorf("job %s ran %d times: %v", id, len(starts), starts)
				}
			}
			if q := h.queue("default"); q.Totals.Stalled+q.Totals.Stale+q.Totals.Failed != 0 {
				t.Errorf("%+v, want nothing stalled, stale or failed", q.Totals)
			}
			for _, n := range h.nodes() {
				if !strings.HasPrefix(n.Session, n.Name) || len(h.nodes()) != 3 {
					t.Errorf("nodes %v, want the three sessions of the start", h.nodes())
				}
			}
		})
	}
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

// sweeperAmong returns the node that sweeps.
func (h *herd) sweeperAmong(nodes []*child) *child {
	h.t.Helper()
	name := h.sweeper()
	i := slices.IndexFunc(nodes, func(c *child) bool { return c.name == name })
	if i < 0 {
		h.t.Fatalf("%q sweeps, none of these", name)
	}
	return nodes[i]
}

// nodeBeside returns one that does not.
func (h *herd) nodeBeside(nodes []*child) *child {
	h.t.Helper()
	name := h.sweeper()
	return nodes[slices.IndexFunc(nodes, func(c *child) bool { return c.name != name })]
}

// killWithJobs kills a node in the middle of its jobs and checks how long it
// took until the last of them ran elsewhere: at least the lease, less the beat
// that may have been the last one, and at most most.
func (h *herd) killWithJobs(victim *child, lease, most time.Duration) {
	h.t.Helper()
	ids := h.occupy(victim.name, work{Sleep: time.Minute})
	held := h.ledger.holds(victim.name)
	killed := time.Now()
	victim.kill()
	eventually(h.t, most+patience, "the jobs run elsewhere", func() bool { return len(h.ledger.of("start", "", "")) == len(ids)+len(held) })
	var last time.Time
	for _, id := range held {
		starts := h.ledger.starts(id)
		if len(starts) != 2 || starts[1].attempt != 2 || starts[1].node == victim.name {
			h.t.Fatalf("job %s: %v, want a second attempt elsewhere", id, starts)
		}
		if at := starts[1].at; at.After(last) {
			last = at
		}
	}
	took := last.Sub(killed)
	h.t.Logf("%d jobs of %s ran elsewhere %v after its death", len(held), victim.name, took.Round(time.Millisecond))
	if took > most || took < lease-600*time.Millisecond {
		h.t.Errorf("recovery took %v, want %v to %v", took, lease, most)
	}
}

// occupy enqueues jobs, one after the other, until a node runs three of them.
func (h *herd) occupy(node string, w work) (ids []string) {
	h.t.Helper()
	for len(h.ledger.holds(node)) < 3 && len(ids) < 20 {
		id := h.do(w)
		ids = append(ids, id)
		eventually(h.t, patience, "the job runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	}
	if len(h.ledger.holds(node)) == 0 {
		h.t.Fatalf("%s gets no job:\n%s", node, h.ledger)
	}
	return ids
}

// A supervisor starts a killed node again at once, on its old gossip port.
func TestAKilledNodeThatIsBackAtOnceKeepsNobodysJobs(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := order{Name: "n3", Gossip: l.Addr().String()}
	_ = l.Close() // free for the node
	h.spawn(order{Name: "n1", Workers: 30})
	h.spawn(order{Name: "n2", Workers: 30})
	victim := h.spawn(o)
	h.awaitHerd(3)
	ids := h.occupy(victim.name, work{Sleep: time.Minute})
	held := h.ledger.holds(victim.name)
	killed := time.Now()
	victim.kill()
	h.spawn(o)
	eventually(t, patience, "the jobs run again", func() bool { return len(h.ledger.of("start", "", "")) == len(ids)+len(held) })
	starts := h.ledger.of("start", "", "")
	took := starts[len(starts)-1].at.Sub(killed)
	t.Logf("%d jobs ran again %v after the death of a node that was back at once", len(held), took.Round(time.Millisecond))
	if took > 3*time.Second {
		t.Errorf("recovery took %v, want at most 3 s", took)
	}
}

// soonest measures three times at most: other tests of this machine may have had
// its processors once. What takes too long by itself does so each time.
func soonest(t *testing.T, what string, most time.Duration, measure func(*testing.T) time.Duration) {
	t.Helper()
	for range 3 {
		took := measure(t)
		t.Logf("%s %v after the stop", what, took.Round(time.Millisecond))
		if took <= most {
			return
		}
	}
	t.Errorf("%s later than %v after the stop, three times", what, most)
}

func handOverOfJobs(t *testing.T) time.Duration {
	h := realHerd(t)
	c := h.config("n1")
	c.DrainTimeout = time.Millisecond
	n1 := h.startWorking(c)
	id := h.do(work{Sleep: time.Minute})
	eventually(t, patience, "the job runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	h.startWorking(h.config("n2"))
	h.awaitHerd(2)
	asked := time.Now()
	go n1.stop()
	eventually(t, patience, "it runs elsewhere", func() bool { return len(h.ledger.starts(id)) == 2 })
	starts := h.ledger.starts(id)
	if starts[1].attempt != 1 || starts[1].fence <= starts[0].fence {
		t.Errorf("%v, want the same attempt under a higher fence", starts)
	}
	if err := n1.stop(); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
	return starts[1].at.Sub(asked)
}

func handOverOfOffice(t *testing.T) time.Duration {
	h := realHerd(t)
	n1 := h.startWorking(h.config("n1"))
	eventually(t, patience, "n1 sweeps", func() bool { return h.sweeper() == "n1" })
	n2 := h.startWorking(h.config("n2"))
	h.awaitHerd(2)
	asked := time.Now()
	go n1.stop()
	eventually(t, patience, "n2 sweeps", func() bool { return n2.current.Load().sweeper.Stats().Sweeping })
	return time.Since(asked)
}
