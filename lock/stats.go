package lock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Stats is a snapshot for metrics. Counters only rise, from New on.
type Stats struct {
	Holding bool          // a tenure lasts
	Epoch   int64         // of that tenure; 0 without one
	Age     time.Duration // since the start of its last successful refresh; 0 without one

	Obtained      int64            // tenures begun
	Ended         map[Reason]int64 // tenures ended; has every reason; the caller's to keep
	RefreshFailed int64            // refreshes that Redis did not answer, or with an error

	// Blocked says why nobody can obtain the lock, as far as this candidate has
	// seen; "" if nothing is wrong.
	Blocked string
}

// counters is what Stats is made of.
type counters struct {
	refreshFailed atomic.Int64
	blocked       atomic.Pointer[string] // nil: nothing is wrong

	mu       sync.Mutex // guards all below
	tenure   *Tenure    // the present one, nil without
	obtained int64
	ended    map[Reason]int64
}

// Stats returns what there is to show. It makes no call.
func (l *Lock) Stats() Stats {
	l.count.mu.Lock()
	defer l.count.mu.Unlock()
	s := Stats{
		Obtained:      l.count.obtained,
		Ended:         make(map[Reason]int64, len(Reasons)),
		RefreshFailed: l.count.refreshFailed.Load(),
	}
	for _, r := range Reasons {
		s.Ended[r] = l.count.ended[r]
	}
	if t := l.count.tenure; t != nil && t.Valid() {
		s.Holding, s.Epoch, s.Age = true, t.Epoch(), t.sinceRefresh()
	}
	if why := l.count.blocked.Load(); why != nil {
		s.Blocked = *why
	}
	return s
}

// began drops a nudge from before, which is answered by now.
func (l *Lock) began(t *Tenure) {
	select {
	case <-l.nudge:
	default:
	}
	l.count.mu.Lock()
	defer l.count.mu.Unlock()
	l.count.tenure = t
	l.count.obtained++
	l.opts.Log.Info().Msg("lock obtained")
}

// ended is called at the moment when a tenure ends; its work may still run.
func (l *Lock) ended(t *Tenure) {
	reason, cause := t.Ended()
	l.count.mu.Lock()
	defer l.count.mu.Unlock()
	l.count.tenure = nil
	if l.count.ended == nil {
		l.count.ended = make(map[Reason]int64, len(Reasons))
	}
	l.count.ended[reason]++
	l.opts.Log.WithLevel(reason.level()).Str("reason", string(reason)).AnErr("cause", cause).
		Int64("epoch", t.Epoch()).Dur("held_ms", time.Since(t.began)).Msg("lock given up")
}

// returned speaks up when the work took longer to stop than the key to expire.
func (l *Lock) returned(t *Tenure) {
	if late := t.overrun(); late > l.opts.TTL {
		l.opts.Log.Warn().Dur("late_ms", late).Msg("the work outlived its lock, and has returned now")
	}
}

func (r Reason) level() zerolog.Level {
	switch r {
	case Stopped, Resigned:
		return zerolog.InfoLevel
	case Fault:
		return zerolog.ErrorLevel
	}
	return zerolog.WarnLevel
}
