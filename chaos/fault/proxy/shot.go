package proxy

import "time"

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
	// If, where set, must agree too. It gets the whole command and must be quick.
	If    func(args []string) bool
	Nth   int // the first of these commands to hit, counted from 1 from now on; default 1
	Times int // how many to hit, one after the other; default 1
	Do    Action
	Delay time.Duration // of Hold, Late and LateCopy
}

// Aimed is a shot that lies in wait. Its methods are safe for concurrent use.
type Aimed struct{}

// Hits is how many commands were hit. A command counts once its fate is sealed:
// with DropReply and LateCopy when Redis has executed it, with Late when it has
// arrived. One whose script Redis did not know (NOSCRIPT) is none.
func (a *Aimed) Hits() int { return 0 }

// Replies are what Redis said to late commands and copies, the first word of
// each ("OK", "STALE"), or "error: ...".
func (a *Aimed) Replies() []string { return nil }

// Done is closed when all Times are hit, and what was to come later has come.
func (a *Aimed) Done() <-chan struct{} { return nil }

// Cancel lets all further commands pass. What was hit already stays hit.
func (a *Aimed) Cancel() {}
