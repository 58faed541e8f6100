package demo

import (
	"context"
	"sync"
	"time"
)

// strain measures how busy the machine is: how late a plain timer of this
// process fires. No job can be more punctual than that, so it stands beside the
// lateness of the jobs; no bar is moved by it.
type strain struct {
	mu   sync.Mutex
	late []time.Duration
}

const strainEvery = 10 * time.Millisecond

// run measures until ctx ends.
func (s *strain) run(ctx context.Context) {
	for {
		begun := time.Now()
		if pause(ctx, strainEvery) != nil {
			return
		}
		late := time.Since(begun) - strainEvery
		s.mu.Lock()
		s.late = append(s.late, late)
		s.mu.Unlock()
	}
}

// spread returns what was measured so far.
func (s *strain) spread() spread {
	s.mu.Lock()
	defer s.mu.Unlock()
	return spreadOf(append([]time.Duration(nil), s.late...))
}
