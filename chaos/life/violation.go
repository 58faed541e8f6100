package life

import "fmt"

// Rules that a move can break. Package check has the same names.
const (
	Phantom    = "phantom"    // a move of a job that nobody enqueued
	Place      = "place"      // a move from where the job was not, or to where it may not go; a repair
	Settlement = "settlement" // a claim or a settlement of a job that another attempt has
	Attempts   = "attempts"   // attempts spent that were not counted, or more than allowed
	Final      = "final"      // a move of a job that had ended
	Early      = "early"      // before its due time
	Slots      = "slots"      // more claims in one call than a node has workers
	Epoch      = "epoch"      // an older one
	Turns      = "turns"      // one that is not higher than the sender's last
	Gone       = "gone"       // a claim after the mark, a reclaim without it
	Condemned  = "condemned"  // twice
	Graceful   = "graceful"   // a hand-back that spent an attempt
	Repair     = "repair"     // an id without a body or a body without a place: only a Redis that lost writes has one
	Hole       = "hole"       // the log is not whole: nothing that follows can be trusted
)

// Violation is a move that no correct queue makes.
type Violation struct {
	Rule  string
	Queue string
	ID    string // of the job or the session; "" where the whole step is meant
	Index int64  // of the step
	US    int64  // by Redis's clock
	Text  string // one sentence
}

func (v Violation) String() string {
	return fmt.Sprintf("%s, log of %s at %d: %s", v.ID, v.Queue, v.Index, v.Text)
}
