package node

import (
	"context"
	"testing"
	"time"
)

// An isolated node sees a stopped process: silent, no answer, dead by gossip. It
// is no witness, since it does not reach the others either, whose beats go on.
func TestIsolatedNodeIsNoWitness(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	var wall wall
	c := h.config("n1")
	c.cluster = wall.around
	n1 := h.startWorking(c)
	c.Name = "n2"
	h.startWorking(c)
	c.Name = "n3"
	n3 := h.startWorking(c)
	h.awaitHerd(3)
	accused := n3.current.Load().session
	pass(time.Second) // they have met
	wall.up.Store(true)
	eventually(t, patience, "n1 takes n3 for dead", func() bool { return n1.gossip.Dead(accused) && len(n1.alive()) == 0 })
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if n1.witness(n1.current.Load()).Testify(ctx, accused) {
		t.Error("a node that reaches nobody testified while another's beat is fresh")
	}
}
