package node

import (
	"sync"
)

// pool bounds how many handlers run at a time, over all queues, and shares the
// slots: by weight among the queues that have work, or strictly in their order.
// Its methods are safe for concurrent use.
type pool struct {
	mu     sync.Mutex
	size   int
	used   int // running and reserved
	strict bool
	seats  []*seat // in the order of the configuration
	freed  chan struct{}
	risky  bool // a job with two stalls runs, or an exchange asks for one
	closed bool // no more claims
}

// seat is a queue's place in the pool.
type seat struct {
	queue  string
	weight int
	used   int
	hungry bool          // jobs wait there, as far as is known
	bell   chan struct{} // one slot: there may be something to claim
}

func newPool(size int, strict bool, queues []Queue) *pool {
	p := &pool{size: size, strict: strict, freed: make(chan struct{}, 1)}
	for _, q := range queues {
		p.seats = append(p.seats, &seat{queue: q.Name, weight: q.Weight, bell: make(chan struct{}, 1)})
	}
	return p
}

// reserve takes up to most free slots for a queue, as its share allows.
func (p *pool) reserve(s *seat, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0
	}
	n := max(min(p.size-p.used, p.share(s)-s.used, most), 0)
	p.used, s.used = p.used+n, s.used+n
	return n
}

// share is how many slots a queue may have now.
func (p *pool) share(s *seat) int {
	total := s.weight
	for _, other := range p.seats {
		if other == s {
			if p.strict {
				break // those behind do not count
			}
			continue
		}
		if !other.hungry {
			continue
		}
		if p.strict {
			return s.used // an earlier one goes first
		}
		total += other.weight
	}
	if p.strict {
		return p.size
	}
	return (p.size*s.weight + total - 1) / total
}

// release gives slots back and rings who may use them.
func (p *pool) release(s *seat, n int) {
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used, s.used = p.used-n, s.used-n
	p.offer()
}

// learn says whether a queue has jobs waiting.
func (p *pool) learn(s *seat, hungry bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.hungry == hungry {
		return
	}
	s.hungry = hungry
	if !hungry {
		p.offer() // its share is free for others
	}
}

// offer rings every hungry queue and the wake loop. The caller holds mu.
func (p *pool) offer() {
	if p.used >= p.size {
		return
	}
	for _, s := range p.seats {
		if s.hungry {
			ring(s.bell)
		}
	}
	ring(p.freed)
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// free returns how many slots nobody has.
func (p *pool) free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0
	}
	return p.size - p.used
}

// active returns how many handlers run, those included that ignore their end.
func (p *pool) active() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// close ends claiming.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// takeRisk asks for the right to claim or run one job with two stalls.
func (p *pool) takeRisk() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.risky {
		return false
	}
	p.risky = true
	return true
}

func (p *pool) dropRisk() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.risky = false
}

// seat returns a queue's place.
func (p *pool) seat(queue string) *seat {
	for _, s := range p.seats {
		if s.queue == queue {
			return s
		}
	}
	return nil
}

// could reports whether a queue might get a slot now.
func (p *pool) could(s *seat) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && p.used < p.size && s.used < p.share(s)
}

func (p *pool) isHungry(s *seat) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.hungry
}
