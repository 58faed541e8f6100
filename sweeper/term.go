package sweeper

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// tenure is what a term needs of a lock.Tenure.
type tenure interface {
	Value() string
	Valid() bool
	SetEpoch(int64)
	Resign(cause error)
}

// loop names the loops of a term that must come round.
type loop int

const (
	promoting loop = iota
	recovering
	auditing
	loops
)

// stuckAfter is longer than any one call to Redis takes to fail.
const stuckAfter = 8 * time.Second

// term is the work of one tenure: its epoch, and what its loops share.
type term struct {
	tenure
	s      *Sweeper
	began  time.Time
	epoch  atomic.Int64
	raises chan struct{}       // one slot: one raise at a time
	pulse  [loops]atomic.Int64 // when each loop came round last, since s.born
	agenda *agenda
	ward   *ward
}

func newTerm(s *Sweeper, held tenure) *term {
	t := &term{tenure: held, s: s, began: time.Now(), agenda: newAgenda(), ward: newWard(), raises: make(chan struct{}, 1)}
	for i := range t.pulse {
		t.pulse[i].Store(int64(time.Since(s.born)))
	}
	return t
}

// begin makes the epoch; false means that the tenure was over before.
func (t *term) begin(ctx context.Context) bool {
	for failures := 0; ctx.Err() == nil && t.Valid(); failures++ {
		switch err := t.raise(ctx, 0); {
		case err == nil:
			t.s.o.Log.Info().Int64("epoch", t.epoch.Load()).Msg("became sweeper")
			return true
		case errors.Is(err, queue.ErrLockLost):
			t.Resign(err)
			return false
		case ctx.Err() == nil:
			t.s.trouble.note("raise", err)
		}
		pause(ctx, pauseAfter(failures), nil)
	}
	return false
}

// raise makes a new epoch above seen, unless another loop has done so by now.
func (t *term) raise(ctx context.Context, seen int64) error {
	select {
	case t.raises <- struct{}{}:
		defer func() { <-t.raises }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.epoch.Load() > seen {
		return nil
	}
	epoch, err := t.s.o.Space.Raise(ctx, t.Value(), seen)
	if err != nil {
		return err
	}
	t.epoch.Store(epoch)
	t.SetEpoch(epoch)
	t.s.trouble.over("raise")
	if seen > 0 {
		t.s.o.Log.Info().Int64("epoch", epoch).Int64("seen", seen).Msg("still sweeper, with a new epoch")
	}
	return nil
}

// under makes a call with the epoch of the term, and again with a higher one if
// a queue has seen a higher one and the lock is still ours; else it resigns.
// Every other error is told, and the caller's to try again.
func (t *term) under(ctx context.Context, step string, call func(epoch int64) error) error {
	for {
		err := call(t.epoch.Load())
		var fenced *queue.FencedError
		switch {
		case err == nil:
			t.s.trouble.over(step)
			return nil
		case ctx.Err() != nil:
			return err
		case !errors.As(err, &fenced):
			t.s.trouble.note(step, err)
			return err
		}
		t.s.count.fenced.Add(1)
		if err := t.raise(ctx, fenced.Seen); err != nil {
			if errors.Is(err, queue.ErrLockLost) {
				t.Resign(fmt.Errorf("another sweeper has been at work: %w", fenced))
			} else if ctx.Err() == nil {
				t.s.trouble.note("raise", err)
			}
			return err
		}
	}
}

// goes reports whether a loop may take its next step, and notes that it came
// round. A tenure whose trust has run out is about to be told so.
func (t *term) goes(ctx context.Context, l loop) bool {
	if ctx.Err() == nil && !t.Valid() {
		<-ctx.Done()
	}
	t.pulse[l].Store(int64(time.Since(t.s.born)))
	return ctx.Err() == nil
}

func (t *term) alive(now time.Time) bool {
	for i := range t.pulse {
		if now.Sub(t.s.born)-time.Duration(t.pulse[i].Load()) > stuckAfter {
			return false
		}
	}
	return true
}

// pause waits for d, for an item of wake (which may be nil) or for the end of
// ctx.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// pauseAfter is the wait after so many failures in a row: 0.1 s, doubled each
// time, at most 1 s.
func pauseAfter(failures int) time.Duration {
	return min(100*time.Millisecond<<min(failures, 4), time.Second)
}

// poke puts an item into a channel of one slot.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
