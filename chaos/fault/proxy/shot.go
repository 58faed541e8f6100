package proxy

import (
	"cmp"
	"math"
	"sync"
	"time"
)

// Action is what a shot does to the command that it hits.
type Action int

// See the package comment.
const (
	DropReply Action = iota + 1
	LateCopy
	Hold
	Late
	Lose
)

// Shot says which commands to hit, and how.
type Shot struct {
	// Script is the name of a script (exchange, enqueue, ...), or of a command
	// in lower case (blpop). Empty: any script of Kelpie.
	Script string
	// If, where set, must agree too. It gets the whole command, must be quick and
	// must not call the Aimed or the Proxy.
	If    func(args []string) bool
	Nth   int // the first of these commands to hit, counted from 1 from now on; default 1
	Times int // how many to hit, one after the other; default 1
	Do    Action
	Delay time.Duration // of Hold, Late and LateCopy
}

// Aimed is a shot that lies in wait. Its methods are safe for concurrent use.
type Aimed struct {
	shot Shot
	done chan struct{}

	mu        sync.Mutex
	seen      int // commands that it was aimed at
	taken     int // hit, or about to be
	hits      int
	later     int // to be sent later
	replies   []string
	cancelled bool
}

// mostReplies bounds what is remembered of them.
const mostReplies = 1000

func newAimed(s Shot) *Aimed {
	s.Nth, s.Times = cmp.Or(s.Nth, 1), cmp.Or(s.Times, 1)
	return &Aimed{shot: s, done: make(chan struct{})}
}

// Hits is how many commands were hit. A command counts once its fate is sealed:
// with DropReply and LateCopy when Redis has executed it. One that Redis answered
// with an error (NOSCRIPT, OOM, ...) is none: the next one is hit instead.
func (a *Aimed) Hits() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hits
}

// Replies are what Redis said to late commands and copies, the first word of
// each ("OK", "STALE"), or "error: ...".
func (a *Aimed) Replies() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.replies...)
}

// Done is closed when all Times are hit, or after Cancel; in both cases once what
// was to be sent later has been answered.
func (a *Aimed) Done() <-chan struct{} { return a.done }

// Cancel lets all further commands pass. What was hit already stays hit.
func (a *Aimed) Cancel() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancelled = true
	a.settle()
}

// hit takes a command if it is one of those to hit.
func (a *Aimed) hit(c *command) bool {
	if a.shot.Script != c.name && (a.shot.Script != "" || !c.script) {
		return false
	}
	if a.shot.If != nil && !a.shot.If(words(c.raw, math.MaxInt)) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen++
	if a.cancelled || a.seen < a.shot.Nth || a.taken >= a.shot.Times {
		return false
	}
	a.taken++
	return true
}

// miss gives back a command whose fate was another one.
func (a *Aimed) miss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken--
	a.settle()
}

// seal counts a hit. later says that something of it is still to be sent.
func (a *Aimed) seal(later bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hits++
	if later {
		a.later++
	}
	a.settle()
}

// answered notes what came of something that was sent later.
func (a *Aimed) answered(reply string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.later--
	if len(a.replies) < mostReplies {
		a.replies = append(a.replies, reply)
	}
	a.settle()
}

// settle closes done when nothing is left to come. The caller holds the lock.
func (a *Aimed) settle() {
	all := a.hits >= a.shot.Times || a.cancelled && a.taken == a.hits
	if !all || a.later > 0 {
		return
	}
	select {
	case <-a.done:
	default:
		close(a.done)
	}
}

// over tells that no further command can be hit.
func (a *Aimed) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}
