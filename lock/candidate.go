package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/bsm/redislock"
)

// candidate is what Run remembers between two tenures. Only the goroutine of
// Run touches it.
type candidate struct {
	*Lock
	tried    time.Time // start of the last attempt
	nextLook time.Time // when to attempt against the hint, and to look at the key
	nudged   bool      // the last pause was ended by a nudge
	failures int       // attempts in a row that Redis did not decide
	faults   int       // tenures in a row that the holder itself ended
}

func newCandidate(l *Lock) *candidate {
	return &candidate{Lock: l, nextLook: time.Now().Add(l.opts.TTL)}
}

// campaign tries until the lock is obtained, or returns nil when ctx ends.
func (c *candidate) campaign(ctx context.Context) *Tenure {
	for ctx.Err() == nil {
		if t := c.try(ctx); t != nil {
			return t
		}
		d := jitter(pauseAfter(c.opts.Retry, c.failures, 2))
		c.pause(ctx, c.nudge, min(d, time.Until(c.nextLook)))
	}
	return nil
}

// try makes one attempt, if there is a reason for it. A second call looks at
// the key now and then when the first one was not served.
func (c *candidate) try(ctx context.Context) *Tenure {
	due := !time.Now().Before(c.nextLook)
	if !c.nudged && !due && c.opts.Held() {
		return nil
	}
	c.tried, c.nudged = time.Now(), false
	t, err := c.obtain(ctx)
	c.note(err)
	if err == nil {
		c.unblocked()
		return t
	}
	if due {
		c.nextLook = time.Now().Add(jitter(c.opts.lookEvery()))
		c.look(ctx)
	}
	return nil
}

// note counts the attempts that Redis did not decide; the first one of a row
// and the end of the row are news.
func (c *candidate) note(err error) {
	if err == nil || errors.Is(err, redislock.ErrNotObtained) {
		if c.failures > 0 {
			c.opts.Log.Info().Int("failed", c.failures).Msg("campaigning for the lock again")
		}
		c.failures = 0
		return
	}
	if c.failures++; c.failures == 1 {
		c.opts.Log.Warn().Err(err).Msg("cannot campaign for the lock, trying on")
	}
}

// rest waits between the end of a tenure and the next campaign; false means
// that ctx has ended. A holder that ended its own tenure rests longer each
// time, until it holds out for ten TTLs, and no nudge shortens it.
func (c *candidate) rest(ctx context.Context, t *Tenure) bool {
	if time.Since(t.began) >= 10*c.opts.TTL {
		c.faults = 0
	}
	c.nextLook = time.Now().Add(c.opts.TTL)
	switch reason, _ := t.Ended(); reason {
	case Fault, Resigned:
		c.pause(ctx, nil, jitter(pauseAfter(c.opts.Retry, c.faults, 4)))
		c.faults++
	default:
		c.faults = 0
		c.pause(ctx, c.nudge, jitter(c.opts.Retry))
	}
	return ctx.Err() == nil
}

// pause waits for d, for a nudge or for the end of ctx. A nudge that follows
// close upon an attempt waits a little, and is not lost.
func (c *candidate) pause(ctx context.Context, nudge <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
		return
	case <-nudge:
		c.nudged = true
	}
	timer.Reset(time.Until(c.tried.Add(c.opts.nudgeGap())))
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// pauseAfter doubles the pause with each bad outcome, up to so many times.
func pauseAfter(retry time.Duration, bad, most int) time.Duration {
	times := 1
	for range bad {
		if times *= 2; times >= most {
			return retry * time.Duration(most)
		}
	}
	return retry * time.Duration(times)
}

// jitter adds up to a quarter, so that candidates do not march in step.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/4+1) }
