package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// faults maps the first word of an answer of Redis to what it means. Such an
// answer is definite: every script checks before it writes, so nothing was
// done. miniredis puts the word in the middle of its text.
var faults = []struct {
	word string
	kind error
}{
	{"OOM ", ErrFull},
	{"READONLY", ErrReadOnly}, {"MISCONF", ErrReadOnly}, {"NOREPLICAS", ErrReadOnly},
	{"NOAUTH", ErrRefused}, {"WRONGPASS", ErrRefused}, {"NOPERM", ErrRefused}, {"invalid password", ErrRefused},
	{"LOADING", ErrBusy}, {"BUSY ", ErrBusy}, {"MASTERDOWN", ErrBusy}, {"TRYAGAIN", ErrBusy}, {"max number of clients", ErrBusy},
	{"WRONGTYPE", ErrWrongType},
	{"DB index is out of range", ErrBadInput},
	{"MOVED ", ErrCluster}, {"CROSSSLOT", ErrCluster}, {"CLUSTERDOWN", ErrCluster},
}

// explain returns the kind of a fault, and whether it is sure that Redis did
// nothing.
func explain(err error) (kind error, definite bool) {
	var op *net.OpError
	var answer redis.Error
	switch {
	case errors.As(err, new(*takenBackError)):
		return nil, true
	case errors.As(err, &answer):
		for _, f := range faults {
			if strings.Contains(answer.Error(), f.word) {
				return f.kind, true
			}
		}
		if errors.Is(err, redis.ErrClosed) {
			return ErrClosed, true
		}
		return nil, true
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted),
		errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return ErrUnreachable, true
	case errors.Is(err, redis.ErrClosed):
		return ErrClosed, true
	case errors.Is(err, context.Canceled), errors.Is(err, ErrUnknown) && !network(err):
		return nil, false
	case decided(err):
		return nil, true
	}
	return ErrUnreachable, false // the network, or an answer that cannot be read
}

func network(err error) bool {
	var op net.Error
	return errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// decided reports an error of this package: the answer came and was understood,
// or nothing was sent.
func decided(err error) bool {
	for _, own := range []error{ErrBadInput, ErrExists, ErrUnconfirmed, ErrNoJob, ErrNoQueue, ErrWrongState, ErrLockLost,
		ErrFormat, ErrClosed, ErrGone, ErrStale, ErrReadOnly, ErrCluster} {
		if errors.Is(err, own) {
			return true
		}
	}
	return errors.As(err, new(*FencedError)) || errors.As(err, new(*notSentError))
}

// notSentError is the failure of a question before the command: the command was
// never sent, whatever became of the question.
type notSentError struct{ text string }

func (e *notSentError) Error() string { return ErrUnreachable.Error() + ": " + e.text }
func (*notSentError) Unwrap() error   { return ErrUnreachable }

func notSent(err error) error {
	if _, definite := explain(err); definite {
		return err
	}
	return &notSentError{err.Error()}
}

// neverSent says that ctx ended before its command left.
func neverSent(ctx context.Context) error { return &takenBackError{context.Cause(ctx)} }

// takenBackError is the end of a command that was not sent, whatever the cause.
type takenBackError struct{ cause error }

func (e *takenBackError) Error() string { return e.cause.Error() }
func (e *takenBackError) Unwrap() error { return e.cause }

// unconfirmedError is the answer of too few replicas to a flight.
type unconfirmedError struct{ have int }

func (e *unconfirmedError) Error() string {
	return fmt.Sprintf("%v: %d replicas have it", ErrUnconfirmed, e.have)
}
func (*unconfirmedError) Unwrap() error { return ErrUnconfirmed }

// IsUnknown reports whether the command that ended with err may have been
// applied all the same.
func IsUnknown(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, ErrUnknown) {
		return true
	}
	_, definite := explain(err)
	return !definite
}

// fault returns what went wrong in a pipeline. Exec itself returns the first
// error only, which may be that a key is not there and hide a real one.
func fault(cmds []redis.Cmder, err error) error {
	for _, c := range cmds {
		if e := c.Err(); e != nil && !isNil(e) {
			return e
		}
	}
	if isNil(err) {
		return nil
	}
	return err
}

// wrap says what failed; errors.Is finds the kind of fault and the cause.
func wrap(op, queue, job string, err error) error {
	if err == nil {
		return nil
	}
	var done *OpError
	if errors.As(err, &done) {
		return err
	}
	if kind, _ := explain(err); kind != nil && !errors.Is(err, kind) {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	return &OpError{Op: op, Queue: queue, Job: job, Err: err}
}
