package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Verb is how an attempt ends; lua/exchange.lua has the same letters.
type Verb byte

// The ways to end an attempt. Complete, Retry and Dead spend it.
const (
	VerbComplete Verb = 'C'
	VerbRetry    Verb = 'R'
	VerbDead     Verb = 'D'
	VerbSnooze   Verb = 'S'
	VerbRelease  Verb = 'L'
	VerbUnserved Verb = 'U'
)

func (v Verb) String() string {
	switch v {
	case VerbComplete:
		return "completed"
	case VerbRetry:
		return "retried"
	case VerbDead:
		return "dead"
	case VerbSnooze:
		return "snoozed"
	case VerbRelease:
		return "released"
	case VerbUnserved:
		return "unserved"
	}
	return "unknown"
}

// Claim is the right to run one attempt and to settle it.
type Claim struct {
	Info
	token  string
	header header
	tries  tries
	broken error // the body cannot be read
}

// Stalls returns how many nodes died with this job so far.
func (c *Claim) Stalls() int { return c.tries.stalls }

// Broken says why the stored body cannot be read, or nil.
func (c *Claim) Broken() error { return c.broken }

// newClaim reads what exchange.lua handed out.
func newClaim(queue, session, id, fence string, body []byte, record string) *Claim {
	c := &Claim{token: fence + " " + session}
	h, payload, err := parseBody(body)
	c.header, c.broken = h, err
	if record != "" {
		c.tries = parseTries(record)
	}
	c.Info = Info{
		ID: id, Kind: h.kind, Queue: queue, Fence: parseInt(fence),
		Attempt: c.tries.spent + 1, MaxAttempts: h.maxAttempts, Priority: h.priority,
		EnqueuedAt: time.UnixMilli(h.enqueued).UTC(), DueAt: time.UnixMilli(h.dueAt()).UTC(),
		Timeout: h.timeout, Payload: payload,
	}
	return c
}

// Settlement is the decided end of an attempt. It is decided once; sending it
// twice is harmless.
type Settlement struct {
	Verb  Verb
	Delay time.Duration // until the job runs again
	Err   error         // why, where it failed

	claim *Claim
	tries string // '' leaves what is there
	again bool   // sent before, with an unknown result
}

// Claim returns the attempt that ends.
func (s *Settlement) Claim() *Claim { return s.claim }

// Again marks the settlement as one that may have been applied already, so that
// a refusal is not counted as a stale attempt.
func (s *Settlement) Again() { s.again = true }

// Released hands the job back without spending the attempt.
func (c *Claim) Released() *Settlement { return &Settlement{Verb: VerbRelease, claim: c} }

// Unserved puts the job aside, since this node has no handler for its kind: for
// 1, 2, 4 .. 60 s, spending nothing.
func (c *Claim) Unserved() *Settlement {
	d := min(time.Second<<min(c.tries.unserved, 6), time.Minute)
	return &Settlement{Verb: VerbUnserved, Delay: d, claim: c, tries: c.tries.unservedOnce()}
}

// Settle turns what a handler returned into a settlement; node goes into the
// record of a failure.
func (c *Claim) Settle(node string, err error) *Settlement {
	if err == nil {
		return &Settlement{Verb: VerbComplete, claim: c}
	}
	o, reason := asOutcome(err), ReasonFailed
	switch {
	case o != nil && o.verb == VerbSnooze:
		return &Settlement{Verb: VerbSnooze, Delay: min(o.delay, maxWait), claim: c}
	case o != nil && o.verb == VerbDead:
		reason = ReasonRefused
	case c.broken != nil || errors.Is(err, errUndecodable):
		reason = ReasonUndecodable
	case errors.Is(err, ErrTimeout):
		reason = ReasonTimeout
	case errors.As(err, new(*PanicError)):
		reason = ReasonPanic
	}
	s := &Settlement{Verb: VerbRetry, Err: err, claim: c, tries: c.tries.failed(node, reason, text(err))}
	if reason == ReasonRefused || reason == ReasonUndecodable || c.Attempt >= c.MaxAttempts {
		s.Verb = VerbDead
		return s
	}
	s.Delay = c.header.backoff.jittered(c.Attempt)
	if o != nil && o.exact {
		s.Delay = min(o.delay, maxWait)
	} else if o != nil {
		s.Delay = min(max(o.delay, s.Delay), maxWait)
	}
	return s
}

// PanicError is the failure of a handler that panicked or called
// runtime.Goexit.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() (s string) {
	defer func() {
		if recover() != nil { // the value's own String panicked
			s = fmt.Sprintf("panic: %T", e.Value)
		}
	}()
	return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack)
}

var errUndecodable = errors.New("payload cannot be decoded")

// Undecodable marks an error of decoding: the job goes to dead, since the same
// bytes will not decode another time.
func Undecodable(err error) error { return fmt.Errorf("%w: %w", errUndecodable, err) }

// text calls a handler's error, which may itself be broken.
func text(err error) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("%T, whose Error panicked", err)
		}
	}()
	return err.Error()
}

// Fit says how many of these settlements one exchange takes: at most MaxSettle,
// and at most 1 MiB of what they write down, but always one.
func Fit(all []*Settlement) int {
	n, bytes := 0, 0
	for _, s := range all {
		bytes += len(s.tries)
		if n == MaxSettle || n > 0 && bytes > flightBytes {
			break
		}
		n++
	}
	return n
}

// args is the settlement as exchange.lua takes it.
func (s *Settlement) args(to []any) []any {
	verb, delay, class := string(rune(s.Verb)), ceilMillis(s.Delay), any(9-s.claim.Priority)
	if s.Verb == VerbComplete {
		keep, headerOnly := s.claim.header.keep()
		if delay = keep; headerOnly {
			class = "h"
		}
	}
	if s.again {
		verb = strings.ToLower(verb)
	}
	return append(to, s.claim.ID, s.claim.token, verb, delay, class, s.tries)
}

// Verdict is what Redis said to a settlement.
type Verdict byte

// Settled: it counts. Stale: another attempt has the job, or it ended.
const (
	Settled Verdict = 'O'
	Stale   Verdict = 'S'
)
