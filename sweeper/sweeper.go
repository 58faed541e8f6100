package sweeper

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kelpiehq/kelpie/lock"
)

// Sweeper is one node's part in keeping the job space in order: a candidate all
// the time, and the sweeper while it holds the lock. All methods are safe for
// concurrent use.
type Sweeper struct {
	o       Options
	born    time.Time
	count   counters
	trouble *trouble
	running sync.Mutex           // held by Run
	term    atomic.Pointer[term] // the present one, nil without
	waiters sync.WaitGroup       // waits for pokes, which may outlive their term by a second
}

// New returns a Sweeper. It does no I/O and starts no goroutine; what the
// options hold stays the caller's. The error names all faults at once.
func New(o Options) (*Sweeper, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Sweeper{o: o, born: time.Now(), trouble: newTrouble(o.Log)}, nil
}

// Run watches the holder of the lock, competes for the lock, and sweeps while
// it has it, until ctx ends. No fault of Redis ends it; the only error is that
// Run is running already. The lock is released at once when ctx ends; Run then
// returns within a second more, when its last wait for a poke is over (closing
// the Redis client behind Options.Poke shortens that).
func (s *Sweeper) Run(ctx context.Context) error {
	if !s.running.TryLock() {
		return errors.New("sweeper: Run is already running")
	}
	defer s.running.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer s.waiters.Wait()
	defer cancel()
	s.waiters.Go(func() { s.judge(ctx) })
	return s.o.Lock.Run(ctx, func(ctx context.Context, t *lock.Tenure) error {
		s.serve(ctx, t)
		return nil
	})
}

// Alive reports whether the sweeps come round, with or without success: no step
// of a loop has taken longer than a call to Redis can. It is true without a
// tenure. It does not block.
func (s *Sweeper) Alive() bool {
	t := s.term.Load()
	return t == nil || t.alive(time.Now())
}

// serve lives one term, from the raise to the return of every loop.
func (s *Sweeper) serve(ctx context.Context, held tenure) {
	s.count.tenures.Add(1)
	t := newTerm(s, held)
	if !t.begin(ctx) {
		return
	}
	s.term.Store(t)
	defer s.term.CompareAndSwap(t, nil)
	s.waiters.Go(func() { t.awaitPokes(ctx) })
	var loops sync.WaitGroup
	loops.Go(func() { t.promote(ctx) })
	loops.Go(func() { t.recover(ctx) })
	loops.Go(func() { t.audit(ctx) })
	loops.Wait()
}
