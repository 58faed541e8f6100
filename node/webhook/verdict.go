package webhook

import (
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// fate is what becomes of a job after an attempt.
type fate int

const (
	delivered fate = iota
	again          // after the backoff, and not before verdict.wait
	hopeless       // dead at once
	putOff         // by verdict.wait: nothing was sent, no attempt is spent
	cutShort       // by the node, whose own cause decides
)

// verdict is the result of an attempt before it is put in the words of queue.
type verdict struct {
	fate fate
	wait time.Duration
	err  error
}

func (v verdict) outcome() error {
	switch v.fate {
	case delivered:
		return nil
	case hopeless:
		return queue.Discard(v.err)
	case putOff:
		return queue.Snooze(v.wait)
	}
	if v.wait > 0 {
		return queue.RetryAfter(v.wait, v.err)
	}
	return v.err
}
