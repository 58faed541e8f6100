package proxy

import (
	"sync/atomic"
	"time"
)

// Way is the state of one direction. The zero value passes all at once.
type Way struct {
	Blocked bool          // nothing passes until the way is set anew; then it all does, in order
	Lost    bool          // with Blocked: what was held is thrown away then, and its connections are reset
	Delay   time.Duration // each command or reply takes so much longer; throughput stays
}

// gate is a way as all connections see it.
type gate struct{ now atomic.Pointer[gateState] }

type gateState struct {
	Way
	over chan struct{} // closed when another state has taken its place
}

func newGate() *gate {
	g := &gate{}
	g.now.Store(&gateState{over: make(chan struct{})})
	return g
}

func (g *gate) set(w Way) { close(g.now.Swap(&gateState{Way: w, over: make(chan struct{})}).over) }

// due is when what comes now may go on, the zero time for at once.
func (g *gate) due() time.Time {
	if d := g.now.Load().Delay; d > 0 {
		return time.Now().Add(d)
	}
	return time.Time{}
}

// fate of what waited at a gate.
type fate int

const (
	passes fate = iota
	lost        // the way was one that loses
	dead        // the connection ended first
)

// wait returns when the way is open and due has come. idle is called before it
// really waits.
func (g *gate) wait(due time.Time, end <-chan struct{}, idle func()) fate {
	for {
		s := g.now.Load()
		wait := time.Until(due)
		if !s.Blocked && (due.IsZero() || wait <= 0) {
			return passes
		}
		idle()
		if s.Blocked {
			select {
			case <-s.over:
				if s.Lost {
					return lost
				}
			case <-end:
				return dead
			}
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.over:
		case <-end:
			t.Stop()
			return dead
		}
		t.Stop()
	}
}

// parcel is a command or a reply in a lane.
type parcel struct {
	raw  []byte
	due  time.Time
	drop bool // the connection ends instead
}

// laneSize is how many parcels a lane holds; then its sender is not read any
// more.
const laneSize = 512
