package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// Duty is what the holder of the lock does. It gets a context that ends when
// the tenure does, or when the context of Run does, with the cause; it should
// ask t.Valid before each piece of work, and must return soon after its context
// has ended. Returning ends the tenure: with an error, which is logged, as a
// fault; without one as if it had resigned.
type Duty func(ctx context.Context, t *Tenure) error

// Lock competes for one key in Redis. All methods are safe for concurrent use.
type Lock struct {
	rdb     redis.Scripter
	locks   *redislock.Client
	opts    Options
	nudge   chan struct{} // one slot: a nudge is remembered, two are one
	running sync.Mutex    // held by Run
	count   counters
}

// New returns a Lock on o.Key. It does no I/O and starts no goroutine; rdb
// stays the caller's. rdb should obey deadlines (ContextTimeoutEnabled), since
// Options.Attempt has no effect otherwise, should not repeat commands by itself
// (MaxRetries -1), and should not share its pool with blocking or bulky calls.
// The error names all faults in o at once.
func New(rdb redis.Scripter, o Options) (*Lock, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Log = o.Log.With().Str("lock", o.Key).Logger()
	return &Lock{rdb: rdb, locks: redislock.New(rdb), opts: o, nudge: make(chan struct{}, 1)}, nil
}

// Run competes for the lock and calls duty, on its own goroutine, for each
// tenure, one at a time. It returns nil when ctx has ended, duty has returned
// and the key is released (2 s at most); the only error is that Run is running
// already. A panic of duty passes through Run after the key has been released.
func (l *Lock) Run(ctx context.Context, duty Duty) error {
	if !l.running.TryLock() {
		return errors.New("lock: Run is already running")
	}
	defer l.running.Unlock()
	c := newCandidate(l)
	for {
		t := c.campaign(ctx)
		if t == nil {
			return nil
		}
		l.serve(ctx, t, duty)
		if !c.rest(ctx, t) {
			return nil
		}
	}
}

// Nudge makes a candidate try at once, whatever Options.Held says: the caller
// has heard that the lock is free. It never blocks, and does nothing during a
// tenure.
func (l *Lock) Nudge() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// serve lives one tenure from the first moment to the release of the key.
func (l *Lock) serve(ctx context.Context, t *Tenure, duty Duty) {
	own, cancel := context.WithCancelCause(ctx)
	l.began(t)
	t.begin(cancel, func() { l.ended(t) })
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		l.keep(context.WithoutCancel(ctx), t)
	}()
	defer func() { // runs when duty panics, too: its work has stopped then
		t.end(Fault, errNoReturn)
		<-kept
		l.returned(t)
		l.release(ctx, t)
	}()
	var err error
	if ctx.Err() == nil { // else it ended while the key was being obtained
		err = duty(own, t)
	}
	l.endAfter(ctx, t, err)
}

// endAfter ends a tenure whose duty has returned, if nothing else ended it.
func (l *Lock) endAfter(ctx context.Context, t *Tenure, err error) {
	switch {
	case ctx.Err() != nil:
		t.end(Stopped, context.Cause(ctx))
	case err != nil:
		t.end(Fault, err)
	default:
		t.end(Resigned, fmt.Errorf("%w: its work is done", ErrResigned))
	}
}

// release gives the key back unless Redis said that it is ours no more. The
// tenure's context is over, so it has one of its own.
func (l *Lock) release(ctx context.Context, t *Tenure) {
	if reason, _ := t.Ended(); reason == Lost {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := t.held.Release(ctx)
	if err != nil && !errors.Is(err, redislock.ErrLockNotHeld) {
		l.opts.Log.Warn().Err(err).Msg("lock not released, others can have it when it expires")
	}
}

// obtain makes one attempt. It is not cut short when ctx ends: a key taken by
// a call that nobody waited for would keep everybody out for a whole TTL.
func (l *Lock) obtain(ctx context.Context) (*Tenure, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.opts.Attempt)
	defer cancel()
	sent := time.Now() // before the call: a slow reply must not stretch the trust
	held, err := l.locks.Obtain(ctx, l.opts.Key, l.opts.TTL, &redislock.Options{Metadata: l.opts.Session})
	if err != nil {
		return nil, err
	}
	return newTenure(held, sent, l.opts.trust()), nil
}
