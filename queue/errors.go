package queue

import (
	"errors"
	"fmt"
)

// What can be wrong with a call. Each is found with errors.Is; the text around
// it names the job, the queue or the field.
var (
	ErrBadInput    = errors.New("bad input")                                          // a field is outside its rule; nothing was sent
	ErrTooLarge    = errors.New("payload is over the limit")                          // nothing was sent
	ErrExists      = errors.New("a job with this id exists")                          // nothing was stored
	ErrUnknown     = errors.New("result unknown")                                     // the command may have been applied
	ErrUnconfirmed = errors.New("stored, not confirmed")                              // by as many replicas as wanted; the job is there
	ErrNoJob       = errors.New("no such job")                                        // with this id, in the place where the call looks
	ErrNoQueue     = errors.New("no such queue")                                      // nobody ever used one of this name
	ErrWrongState  = errors.New("not possible in this state")                         // such as another due time for an active job; nothing was changed
	ErrLockLost    = errors.New("the sweeper lock is not held")                       // by the one who asks
	ErrFormat      = errors.New("the data has another format")                        // written by another major version
	ErrClosed      = errors.New("the client is closed")                               // nothing was sent
	ErrGone        = errors.New("the session was declared dead")                      // by the script that was called
	ErrStale       = errors.New("the command came after a newer")                     // of the same sender: nothing was done
	ErrUnreachable = errors.New("Redis is not reachable")                             // nothing was sent, unless IsUnknown
	ErrRefused     = errors.New("Redis refused the login or the right")               // nothing was done
	ErrFull        = errors.New("Redis is out of memory")                             // nothing was written
	ErrReadOnly    = errors.New("Redis does not accept writes")                       // replica, MISCONF or too few replicas
	ErrBusy        = errors.New("Redis is busy or still loading")                     // nothing was done
	ErrWrongType   = errors.New("a key of the job space holds something else")        // nothing was written
	ErrCluster     = errors.New("Redis runs in cluster mode, which is not supported") // nothing was done
)

// Causes of a handler's context, found with context.Cause.
var (
	ErrShutdown    = errors.New("the node shuts down")
	ErrSessionLost = errors.New("the session was lost: another node may run this job now")
	ErrTimeout     = errors.New("the time for this attempt is over")
	ErrCancelled   = errors.New("the job was cancelled")
)

// bad marks a sentence as ErrBadInput without adding words to it.
var bad error = silent{ErrBadInput}

type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// OpError says which move failed, in which queue and on which job.
type OpError struct {
	Op, Queue, Job string // script; queue and job are empty where the move concerns none
	Err            error
}

func (e *OpError) Error() string {
	s := e.Op
	if e.Queue != "" {
		s += " in queue " + e.Queue
	}
	if e.Job != "" {
		s += ", job " + e.Job
	}
	return s + ": " + e.Err.Error()
}

func (e *OpError) Unwrap() error { return e.Err }

// FencedError is returned to a sweeper whose epoch is older than one that the
// queue has seen.
type FencedError struct{ Seen int64 }

func (e *FencedError) Error() string { return fmt.Sprintf("fenced: epoch %d was seen here", e.Seen) }
