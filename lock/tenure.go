package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
)

// Causes of the end of a tenure's context, found with errors.Is in
// context.Cause. When the context of Run ended the cause is that one's.
var (
	// ErrLost means that the lock may have another holder by now: Redis said
	// so, or could not be asked for too long, or the work hung.
	ErrLost = errors.New("lock lost")
	// ErrResigned means that the holder gave the lock up of its own accord.
	ErrResigned = errors.New("lock resigned")
)

// errNoReturn is the cause after a panic; the work has stopped by then.
var errNoReturn = errors.New("the work under the lock did not return")

// Reason says why a tenure ended. It is a label of metrics and of the log.
type Reason string

const (
	Stopped  Reason = "stopped"  // the context of Run ended
	Resigned Reason = "resigned" // Resign was called, or the duty returned without error
	Fault    Reason = "fault"    // the duty returned an error, or panicked
	Lost     Reason = "lost"     // Redis has another value, or none
	Expired  Reason = "expired"  // no refresh was answered in time
	Hung     Reason = "hung"     // Options.Alive said that the work no longer comes round
)

// Reasons lists all there are, so that a metric can show the zeros too.
var Reasons = []Reason{Stopped, Resigned, Fault, Lost, Expired, Hung}

// Tenure is the lock held once, from one attempt that obtained it to its end.
// All methods are safe for concurrent use, also after the end.
type Tenure struct {
	held  *redislock.Lock
	trust time.Duration
	began time.Time
	epoch atomic.Int64
	over  chan struct{} // closed by end
	onEnd func()        // called by end, once, without mu; set by begin

	mu     sync.Mutex // guards all below
	cancel context.CancelCauseFunc
	timer  *time.Timer // fires expire; set by begin
	last   time.Time   // start of the last successful refresh
	hung   bool        // the last refresh was left out because Alive said no
	reason Reason      // "" while the tenure lasts
	cause  error
	ended  time.Time
}

// newTenure is trusted from sent on, the start of the call that obtained held.
func newTenure(held *redislock.Lock, sent time.Time, trust time.Duration) *Tenure {
	return &Tenure{held: held, trust: trust, began: sent, last: sent, over: make(chan struct{})}
}

// Value is the whole value of the key as it stands in Redis, token and session.
// It belongs to this tenure alone: a script that compares it with the key knows
// whether the tenure still holds the lock.
func (t *Tenure) Value() string { return t.held.Token() + t.held.Metadata() }

// SetEpoch keeps the number of this term, as the store made it.
func (t *Tenure) SetEpoch(epoch int64) { t.epoch.Store(epoch) }

// Epoch is what SetEpoch kept last, 0 before that.
func (t *Tenure) Epoch() int64 { return t.epoch.Load() }

// Valid tells whether the tenure may act: it has not ended, and its trust has
// not run out. It looks at the clock itself, so that it is right at once when
// a paused process wakes, and makes no call.
func (t *Tenure) Valid() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason == "" && time.Now().Before(t.last.Add(t.trust))
}

// Resign ends the tenure: the context is cancelled with cause (nil means
// ErrResigned), and the key is released when the duty has returned. It does
// not wait, and does nothing if the tenure has ended.
func (t *Tenure) Resign(cause error) {
	if cause == nil {
		cause = ErrResigned
	}
	t.end(Resigned, cause)
}

// Ended says why the tenure ended and what it told its context; "" and nil
// while it lasts.
func (t *Tenure) Ended() (Reason, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason, t.cause
}

// SessionOf cuts the session of the holder out of the value of a key; false if
// the value is too short to be one of ours.
func SessionOf(value string) (session string, ok bool) {
	if len(value) <= tokenLen {
		return "", false
	}
	return value[tokenLen:], true
}

const tokenLen = 22 // of a token that redislock makes: 16 random bytes in base64

// begin starts the clock: when the tenure ends cancel is called with the cause,
// then onEnd.
func (t *Tenure) begin(cancel context.CancelCauseFunc, onEnd func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel, t.onEnd = cancel, onEnd
	t.timer = time.AfterFunc(time.Until(t.last.Add(t.trust)), t.expire)
}

// extend makes sent the start of the last successful refresh. A tenure that
// has ended, or should have by now, stays so: its context may be cancelled.
func (t *Tenure) extend(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reason != "" || !time.Now().Before(t.last.Add(t.trust)) {
		return
	}
	t.last, t.hung = sent, false
	t.timer.Reset(time.Until(sent.Add(t.trust)))
}

// suspect remembers that a refresh was left out, for the reason at the end.
func (t *Tenure) suspect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hung = true
}

// expire is called by the timer. It may come a moment after an extension that
// was too late to stop it; then the timer runs again already.
func (t *Tenure) expire() {
	t.mu.Lock()
	extended, hung := time.Now().Before(t.last.Add(t.trust)), t.hung
	t.mu.Unlock()
	switch {
	case extended:
	case hung:
		t.end(Hung, fmt.Errorf("%w: the work under it has not come round", ErrLost))
	default:
		t.end(Expired, fmt.Errorf("%w: not refreshed for %v", ErrLost, t.trust))
	}
}

// end is the only way out of a tenure. The first reason stands.
func (t *Tenure) end(reason Reason, cause error) {
	if t.finish(reason, cause) {
		t.onEnd()
		close(t.over) // last: who has seen it knows that all is said
	}
}

func (t *Tenure) finish(reason Reason, cause error) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reason != "" {
		return false
	}
	t.reason, t.cause, t.ended = reason, cause, time.Now()
	t.timer.Stop()
	t.cancel(cause)
	return true
}

// overrun is how long ago the tenure ended.
func (t *Tenure) overrun() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.ended)
}

// sinceRefresh is the age of what the trust rests on.
func (t *Tenure) sinceRefresh() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.last)
}
