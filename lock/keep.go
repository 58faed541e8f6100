package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
)

// keep refreshes the key until the tenure is over. It goes on while the duty
// winds down after the end of Run's context: until the work has stopped nobody
// else should begin.
func (l *Lock) keep(ctx context.Context, t *Tenure) {
	timer := time.NewTimer(time.Until(t.began.Add(l.opts.Refresh)))
	defer timer.Stop()
	var failed int // refreshes in a row
	for {
		select {
		case <-t.over:
			return
		case <-timer.C:
		}
		began := time.Now()
		switch err := l.refresh(ctx, t); {
		case err == nil:
			if failed > 0 {
				l.opts.Log.Info().Int("failed", failed).Msg("lock refreshed again")
			}
			failed = 0
			timer.Reset(time.Until(began.Add(l.opts.Refresh)))
		default:
			if failed++; failed == 1 {
				l.opts.Log.Warn().Err(err).Msg("lock not refreshed, its trust runs down")
			}
			timer.Reset(l.opts.again())
		}
	}
}

var errNotAlive = errors.New("the work under the lock does not come round")

// refresh makes one attempt, unless there is nothing left to refresh. An error
// means that another attempt may succeed; nil also that the tenure is over.
func (l *Lock) refresh(ctx context.Context, t *Tenure) error {
	if !t.Valid() {
		return nil // over, or about to be: the timer says so
	}
	if !l.opts.Alive() {
		t.suspect()
		return errNotAlive
	}
	ctx, cancel := context.WithTimeout(ctx, l.opts.Attempt)
	defer cancel()
	sent := time.Now() // before the call: a slow reply must not stretch the trust
	err := t.held.Refresh(ctx, l.opts.TTL, nil)
	switch {
	case errors.Is(err, redislock.ErrNotObtained):
		t.end(Lost, fmt.Errorf("%w: Redis has another holder, or none", ErrLost))
		return nil
	case err != nil:
		l.count.refreshFailed.Add(1)
		return err
	}
	t.extend(sent)
	return nil
}
