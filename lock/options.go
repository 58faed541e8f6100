package lock

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

const (
	minTTL         = 50 * time.Millisecond // below it the parts of a TTL drown in timer noise
	releaseTimeout = 2 * time.Second       // for giving the key back, whatever ended the tenure
)

// Options tunes a Lock. Key and Session are required, the rest has defaults
// that fit together; a changed TTL changes them in proportion.
type Options struct {
	Key     string // the key in Redis
	Session string // who we are: new at every start of a process, part of the stored value

	TTL     time.Duration // after which Redis forgets a holder that is gone; whole ms, at least 50 ms; default 3 s
	Refresh time.Duration // between the starts of two refreshes; default TTL/3
	Attempt time.Duration // the longest that one try to obtain or refresh may take; default TTL/6
	Retry   time.Duration // between two tries of a candidate, plus up to a quarter; default TTL/3

	// Alive tells whether the work of the tenure still comes round. It is asked
	// before each refresh, from another goroutine, must not block, and must say
	// yes to a tenure that has just begun. Default: always yes.
	Alive func() bool

	// Held tells whether somebody holds the lock, as far as the caller knows
	// without asking Redis; while it says yes a candidate makes no calls. It is
	// asked from the goroutine of Run and must not block. Unknown is no.
	// Default: never.
	Held func() bool

	Log zerolog.Logger // changes of state only; the zero value is silent
}

func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, 3*time.Second)
	o.Refresh = cmp.Or(o.Refresh, o.TTL/3)
	o.Attempt = cmp.Or(o.Attempt, o.TTL/6)
	o.Retry = cmp.Or(o.Retry, o.TTL/3)
	if o.Alive == nil {
		o.Alive = func() bool { return true }
	}
	if o.Held == nil {
		o.Held = func() bool { return false }
	}
	return o
}

// check names every fault at once: field, value, rule.
func (o Options) check() error {
	var faults []error
	rule := func(holds bool, format string, args ...any) {
		if !holds {
			faults = append(faults, fmt.Errorf("lock: "+format, args...))
		}
	}
	rule(o.Key != "", "key %q: must not be empty", o.Key)
	rule(o.Session != "", "session %q: must not be empty", o.Session)
	rule(o.TTL >= minTTL, "ttl %v: must be at least %v", o.TTL, minTTL)
	rule(o.TTL%time.Millisecond == 0, "ttl %v: must be whole milliseconds", o.TTL)
	rule(o.Refresh > 0, "refresh %v: must be above 0", o.Refresh)
	rule(o.Attempt > 0, "attempt %v: must be above 0", o.Attempt)
	rule(o.Retry > 0, "retry %v: must be above 0", o.Retry)
	rule(o.Refresh+o.Attempt < o.trust(), "refresh %v and attempt %v: must together be below %v, two thirds of the ttl %v",
		o.Refresh, o.Attempt, o.trust(), o.TTL)
	return errors.Join(faults...)
}

// trust is how long after the start of a successful refresh a tenure may act.
func (o Options) trust() time.Duration { return o.TTL * 2 / 3 }

// again is the wait after a refresh that failed: several fit into what is left
// of the trust.
func (o Options) again() time.Duration { return o.Refresh / 4 }

// lookEvery is how often a candidate makes sure that the key it waits for can
// expire, and that a hint has not misled it: two TTLs at most, with the jitter.
func (o Options) lookEvery() time.Duration { return o.TTL * 8 / 5 }

// nudgeGap keeps a storm of nudges from becoming a storm of calls, and is far
// below the time in which a hand-over shall be done.
func (o Options) nudgeGap() time.Duration { return o.Retry / 20 }
