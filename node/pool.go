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
	clock  float64 // pass of the queue that got slots last
	risky  bool    // a job with two stalls runs, or an exchange asks for one
	closed bool    // no more claims
}

// seat is a queue's place in the pool.
type seat struct {
	queue  string
	weight int
	used   int
	pass   float64       // slots had so far by weight; who waits is at least at the pool's clock
	hungry bool          // jobs wait there, as far as is known
	asking bool          // an exchange that reserved slots is in flight
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
	n := max(min(p.room(s), most), 0)
	p.used, s.used = p.used+n, s.used+n
	if s.asking = n > 0; s.asking {
		p.join(s)
		p.clock = s.pass
		s.pass += float64(n) / float64(s.weight)
	}
	return n
}

// join keeps a queue that had no work for a while from having saved up for it.
func (p *pool) join(s *seat) {
	if !s.hungry {
		s.pass = max(s.pass, p.clock)
	}
}

// room is how many free slots a queue may take now. One slot is left to each
// hungry queue that has none and whose turn is before: shares are rounded up, so
// of more queues than slots the quickest would have all.
func (p *pool) room(s *seat) int {
	free := p.size - p.used
	for _, other := range p.seats {
		if !p.strict && other != s && other.hungry && other.used == 0 && other.pass < s.pass {
			free--
		}
	}
	return min(free, p.share(s)-s.used)
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

// answer ends what reserve began: an exchange came back or failed, left so many
// slots unused, and says whether the queue has jobs waiting.
func (p *pool) answer(s *seat, unused int, hungry bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used, s.used = p.used-unused, s.used-unused
	s.pass -= float64(unused) / float64(s.weight)
	s.asking, s.hungry = false, hungry
	p.offer()
	ring(p.freed) // also where no slot is free: the wake loop waits for the answer
}

// learn says whether a queue has jobs waiting.
func (p *pool) learn(s *seat, hungry bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.hungry == hungry {
		return
	}
	p.join(s)
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
	return !p.closed && p.room(s) > 0
}

// unsettled reports that some queue asks for jobs now or is about to: its bell
// was rung. What it gets decides which queues have to be listened to.
func (p *pool) unsettled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seats {
		if s.asking || s.hungry && !p.closed && p.room(s) > 0 {
			return true
		}
	}
	return false
}

func (p *pool) isHungry(s *seat) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.hungry
}
