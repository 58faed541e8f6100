package sweeper

import (
	"slices"
	"sync"
	"time"
)

// agenda says which queue is to be looked at when. The promotion takes from it
// and plans the next look; pokes and the registry put looks forward. A look that
// was asked for while one was under way is not lost.
type agenda struct {
	wake  chan struct{} // for the promotion: something is due earlier
	fresh chan struct{} // for the audit: the queues are not the same any more

	mu    sync.Mutex // guards all below
	queue []string   // all of them, in alphabetical order; replaced, never changed
	looks map[string]*look
}

// look is the plan for one queue.
type look struct {
	at       time.Time // zero: none, the queue is in hand
	failures int       // in a row
}

func newAgenda() *agenda {
	return &agenda{wake: make(chan struct{}, 1), fresh: make(chan struct{}, 1), looks: map[string]*look{}}
}

// set takes the queues that there are; new ones are due at once.
func (a *agenda) set(queues []string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Equal(a.queue, queues) {
		return
	}
	looks := make(map[string]*look, len(queues))
	for _, q := range queues {
		if looks[q] = a.looks[q]; looks[q] == nil {
			looks[q] = &look{at: now}
		}
	}
	a.queue, a.looks = queues, looks
	poke(a.wake)
	poke(a.fresh)
}

// queues returns all queues; the slice is not to be changed.
func (a *agenda) queues() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queue
}

// poke makes a queue due at once; one that is not there is ignored.
func (a *agenda) poke(queue string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.looks[queue]; l != nil {
		l.bring(now)
		poke(a.wake)
	}
}

// pokeAll makes every queue due at once.
func (a *agenda) pokeAll(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.looks {
		l.bring(now)
	}
	poke(a.wake)
}

// take returns the queues that are due, the longest due first, and takes them in
// hand; if there are none, how long until there is one, at most most.
func (a *agenda) take(now time.Time, most time.Duration) (due []string, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	wait = most
	for _, q := range a.queue {
		switch l := a.looks[q]; {
		case l.at.IsZero():
		case !l.at.After(now):
			due = append(due, q)
		default:
			wait = min(wait, l.at.Sub(now))
		}
	}
	slices.SortStableFunc(due, func(p, q string) int { return a.looks[p].at.Compare(a.looks[q].at) })
	for _, q := range due {
		a.looks[q].at = time.Time{}
	}
	return due, wait
}

// plan gives a queue back with the time of its next look.
func (a *agenda) plan(queue string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.looks[queue]; l != nil {
		l.failures = 0
		l.bring(at)
	}
}

// failed gives a queue back that could not be looked at.
func (a *agenda) failed(queue string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.looks[queue]; l != nil {
		l.at = now.Add(pauseAfter(l.failures)) // also against a poke: the pause is short
		l.failures++
	}
}

// bring puts a look forward, never back.
func (l *look) bring(at time.Time) {
	if l.at.IsZero() || at.Before(l.at) {
		l.at = at
	}
}
