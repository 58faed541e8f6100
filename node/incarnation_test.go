package node

import (
	"context"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// lone is an incarnation without its loops.
func (h *herd) lone(t *testing.T, c Config) *incarnation {
	t.Helper()
	c.Gossip = "off"
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	h.works("lone")(n)
	if n.redis, err = newRedisSide(n.cfg, n.log, n.complain); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.redis.close)
	if n.state, err = openStateDir(""); err != nil {
		t.Fatal(err)
	}
	in, err := newIncarnation(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.unwake(); in.unpoke() })
	return in
}

// The first beat counted, its answer was lost, and then the others gave this
// session up.
func TestSessionCondemnedBeforeItHadStartedIsFollowedByANewOne(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	in := h.lone(t, h.config("n1"))
	h.rdb.ZAdd(context.Background(), h.prefix+":{cluster}:condemned", zAt(in.session, time.Now()))
	if err := in.run(context.Background(), context.Background()); err != nil || in.phase() != phaseGone {
		t.Errorf("run: %v, phase %d; want the session lost and no error", err, in.phase())
	}
}

func TestLoopsOfLostSessionsEndWithTheNode(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	release := make(chan struct{})
	n := h.start(h.config("n1"), func(n *Node) {
		n.handle("deaf", func(context.Context, *queue.Claim) error { <-release; return nil })
	})
	h.enqueue("deaf", "")
	eventually(t, patience, "it runs", func() bool { return n.pool.active() == 1 })
	first := n.current.Load()
	first.lose("told by a test")
	eventually(t, patience, "a new session", func() bool { return n.current.Load() != first && n.ready() == nil })
	if err := n.stop(); err != nil {
		t.Errorf("Run returned %v", err)
	}
	close(release)
	done := make(chan struct{})
	go func() { n.leftovers.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		t.Error("a loop of the lost session goes on after the node")
	}
}

// A lock may expire just before its dead holder is silent long enough to be
// condemned. Then nobody is left to condemn for it, and a candidate that waited
// for its own next try would add a second to the recovery.
func TestBeatThatShowsTheLockFreeMakesTheCandidateTryAtOnce(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	in := h.lone(t, h.config("n1"))
	tries := 0
	in.onLockFree = func() { tries++ }
	lock := h.prefix + ":{cluster}:sweeper"
	h.rdb.Set(context.Background(), lock, "0123456789012345678901other-1", time.Minute)
	if err := in.beat(); err != nil || tries != 0 {
		t.Errorf("held by another: %d tries, %v", tries, err)
	}
	h.rdb.Del(context.Background(), lock)
	if err := in.beat(); err != nil || tries != 1 {
		t.Errorf("free: %d tries, %v; want one", tries, err)
	}
}
