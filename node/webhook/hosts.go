package webhook

import (
	"math/rand/v2"
	"sync"
	"time"
)

// How a host that is full, or was slow, is treated.
const (
	shortestWait = time.Second
	longestWait  = 30 * time.Second
	forgetAfter  = 10 * time.Minute // without a delivery a slow host starts anew
)

// result is what a delivery tells about the speed of its host.
type result int

const (
	noNews   result = iota // refused, reset, or cut short by ourselves
	answered               // with whatever status
	timedOut
)

// hosts bounds what runs at the same time per host, more tightly where requests
// time out. It keeps nothing about hosts that are idle and well.
type hosts struct {
	max int // bound of a host that is well

	mu      sync.Mutex // guards what follows
	known   map[string]*host
	sweepAt int // number of known ones at which forgotten ones are dropped
}

type host struct {
	limit   int // 1 to max
	running int
	turned  int // away since the last delivery ended
	used    time.Time
}

func newHosts(max int) *hosts { return &hosts{max: max, known: map[string]*host{}, sweepAt: 1000} }

// enter claims a place at the host, or says how long to stay away. A claimed
// place is given back by leave.
func (hs *hosts) enter(name string, now time.Time) (wait time.Duration, ok bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.known[name]
	if h == nil {
		hs.sweep(now)
		h = &host{limit: hs.max}
		hs.known[name] = h
	}
	if h.running >= h.limit {
		h.turned++
		return turnAway(h.turned, h.limit), false
	}
	h.running++
	h.used = now
	return 0, true
}

// leave gives the place back.
func (hs *hosts) leave(name string, r result, now time.Time) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.known[name]
	switch r {
	case timedOut:
		h.limit = max(min(h.limit, h.running)/2, 1)
	case answered:
		h.limit = min(h.limit+1, hs.max)
	}
	h.running--
	h.turned = 0
	h.used = now
	if h.running == 0 && h.limit == hs.max {
		delete(hs.known, name)
	}
}

// sweep drops hosts that were slow once and are not used any more.
func (hs *hosts) sweep(now time.Time) {
	if len(hs.known) < hs.sweepAt {
		return
	}
	for name, h := range hs.known {
		if h.running == 0 && now.Sub(h.used) > forgetAfter {
			delete(hs.known, name)
		}
	}
	hs.sweepAt = 2*len(hs.known) + 1000
}

// turnAway spreads the turned-away over more time the more they are, so that a
// long line at one host costs the node few claims; half of it is chance.
func turnAway(turned, limit int) time.Duration {
	wait := min(shortestWait*time.Duration(1+turned/limit), longestWait)
	return wait/2 + rand.N(wait/2+1)
}
