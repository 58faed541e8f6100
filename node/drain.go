package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

const (
	cancelGrace   = 5 * time.Second        // handlers have so long to return after they were cancelled
	abortGrace    = 100 * time.Millisecond // after a second signal
	handBackBound = 5 * time.Second        // for Redis to take everything back
)

// drain ends an incarnation in named steps: stop claiming, let handlers finish,
// cancel the rest, hand back, give up the sweeper lock. Each is bounded. The
// error lists the jobs that could not be handed back; others reclaim them.
func (in *incarnation) drain(exchanging *sync.WaitGroup, stopSweeper, stopHard func()) error {
	n := in.n
	n.step("stop claiming", func() {
		n.pool.close()
		in.enter(phaseDraining)
		n.tellDraining()
	})
	aborted := false
	n.step("let handlers finish", func() { aborted = in.awaitHandlers(n.cfg.DrainTimeout, n.cfg.Abort) })
	if in.active() > 0 {
		n.step("cancel handlers", func() {
			in.cancelAll(queue.ErrShutdown)
			if !aborted {
				aborted = in.awaitHandlers(cancelGrace, n.cfg.Abort)
			}
			if aborted {
				in.awaitHandlers(abortGrace, nil)
			}
		})
	}
	var left []string
	n.step("hand back", func() { left = in.handBack(exchanging, stopHard) })
	n.step("give up the sweeper lock", func() {
		held := in.lock.Stats().Holding
		stopSweeper()
		if held {
			n.tellLockFree()
		}
	})
	switch {
	case len(left) > 0:
		return fmt.Errorf("%d jobs could not be handed back and will be reclaimed: %s", len(left), strings.Join(left[:min(len(left), 100)], " "))
	case aborted:
		return ErrAborted
	}
	return nil
}

// awaitHandlers waits until no handler runs; true when it was cut short.
func (in *incarnation) awaitHandlers(most time.Duration, abort <-chan struct{}) bool {
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for in.active() > 0 {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		case <-abort:
			return true
		}
	}
	return false
}

// handBack releases what still runs, lets every exchange loop say bye, and
// returns the ids that Redis did not take back in time.
func (in *incarnation) handBack(exchanging *sync.WaitGroup, stopHard func()) (left []string) {
	for _, e := range in.exchangers {
		for _, a := range e.running.all() {
			e.decide(a, a.claim.Released())
		}
	}
	in.enter(phaseHandBack)
	done := make(chan struct{})
	go func() { exchanging.Wait(); close(done) }()
	ctx, cancel := context.WithTimeout(context.Background(), handBackBound)
	defer cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	stopHard()
	<-done // bounded by the time-out of one call
	for _, e := range in.exchangers {
		e.mu.Lock()
		for _, s := range e.decided {
			left = append(left, s.Claim().ID)
		}
		e.mu.Unlock()
	}
	return left
}
