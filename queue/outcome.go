package queue

import (
	"errors"
	"fmt"
	"time"
)

// Snooze ends an attempt without spending it: the job runs again after d with
// the same attempt number.
func Snooze(d time.Duration) error { return &outcome{verb: VerbSnooze, delay: max(d, 0), exact: true} }

// RetryIn fails the attempt because of err and runs the job again after exactly
// d, unless this was its last attempt.
func RetryIn(d time.Duration, err error) error {
	return &outcome{verb: VerbRetry, delay: max(d, 0), exact: true, err: err}
}

// RetryAfter is RetryIn for a wish of somebody else, such as a Retry-After
// header: the wait is d or the job's own backoff, whichever is longer.
func RetryAfter(d time.Duration, err error) error {
	return &outcome{verb: VerbRetry, delay: max(d, 0), err: err}
}

// Discard fails the attempt because of err and sends the job to dead at once,
// whatever attempts it has left.
func Discard(err error) error { return &outcome{verb: VerbDead, err: err} }

// outcome is what a handler decided beyond success and failure.
type outcome struct {
	verb  Verb
	delay time.Duration
	exact bool // delay stands as it is
	err   error
}

func (o *outcome) Error() string {
	switch {
	case o.err != nil:
		return o.err.Error()
	case o.verb == VerbSnooze:
		return fmt.Sprintf("snoozed for %v", o.delay)
	}
	return "discarded"
}

func (o *outcome) Unwrap() error { return o.err }

// asOutcome finds an outcome anywhere in the chain of err.
func asOutcome(err error) *outcome {
	var o *outcome
	if errors.As(err, &o) {
		return o
	}
	return nil
}
