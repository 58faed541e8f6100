package sweeper

import (
	"sync/atomic"
	"time"
)

// Stats is a snapshot for metrics. Counters only rise, from New on.
type Stats struct {
	Sweeping bool  // a term lasts
	Epoch    int64 // of that term; 0 without one

	Tenures   int64 // times that the lock was held
	Fenced    int64 // calls refused since a queue had seen a higher epoch
	Promoted  int64 // jobs moved from delayed to waiting
	Condemned int64 // sessions declared dead by this node
	Reclaimed int64 // jobs taken from dead sessions
	Forgotten int64 // ended jobs removed since their retention was over
	Dropped   int64 // dead jobs removed since there were too many
	Orphans   int64 // ids without a body, removed
	Strays    int64 // bodies without a place, put into waiting
	Errors    int64 // calls that failed

	Failing   string    // what fails now and how it last failed, "" if nothing does
	LastSweep time.Time // when the promotion last came round without an error; zero before the first
}

type counters struct {
	tenures, fenced, promoted, condemned, reclaimed, forgotten, dropped, orphans, strays atomic.Int64

	swept atomic.Pointer[time.Time]
}

// Stats returns what there is to show. It makes no call.
func (s *Sweeper) Stats() Stats {
	c := &s.count
	out := Stats{
		Tenures: c.tenures.Load(), Fenced: c.fenced.Load(), Promoted: c.promoted.Load(),
		Condemned: c.condemned.Load(), Reclaimed: c.reclaimed.Load(), Forgotten: c.forgotten.Load(),
		Dropped: c.dropped.Load(), Orphans: c.orphans.Load(), Strays: c.strays.Load(),
		Errors: s.trouble.errors.Load(), Failing: s.trouble.failing(),
	}
	if t := s.term.Load(); t != nil && t.Valid() {
		out.Sweeping, out.Epoch = true, t.epoch.Load()
	}
	if at := c.swept.Load(); at != nil {
		out.LastSweep = *at
	}
	return out
}
