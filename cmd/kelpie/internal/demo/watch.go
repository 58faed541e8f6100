package demo

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// look is what Redis says of nodes and jobs at one moment.
type look struct {
	at    time.Time
	nodes []queue.NodeInfo
	queue queue.QueueInfo
}

// sweeper returns the node that holds the lock.
func (l look) sweeper() (queue.NodeInfo, bool) {
	i := slices.IndexFunc(l.nodes, func(n queue.NodeInfo) bool { return n.Sweeper })
	if i < 0 {
		return queue.NodeInfo{}, false
	}
	return l.nodes[i], true
}

// watch looks at Redis all the time: for the screen, for the changes of the
// sweeper, and to know when a new one is at work. The verdict takes from it only
// which due times fell into a time without a sweeper.
type watch struct {
	jobs    *queue.Client
	journal *journal

	mu      sync.Mutex
	last    look
	sweeper queue.NodeInfo       // in its term; the last one that was seen
	changes int                  // of the sweeper, the first election not counted
	away    string               // session of a killed sweeper that has no successor yet
	backs   map[string]time.Time // session of a killed sweeper: when the next one was at work
}

const lookEvery = 40 * time.Millisecond

// run looks until ctx ends.
func (w *watch) run(ctx context.Context) {
	for pause(ctx, lookEvery) == nil {
		nodes, err := w.jobs.Nodes(ctx)
		if err != nil {
			continue
		}
		q, err := w.jobs.Queue(ctx, space)
		if err != nil {
			q = queue.QueueInfo{} // nothing was enqueued yet
		}
		w.see(look{time.Now(), nodes, q})
	}
}

// see takes in one look.
func (w *watch) see(l look) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = l
	now, sweeps := l.sweeper()
	if !sweeps || now.Epoch < w.sweeper.Epoch || now.Epoch == 0 {
		return
	}
	if now.Session != w.sweeper.Session {
		if now.Epoch == w.sweeper.Epoch {
			return // it holds the lock, but its term has not begun
		}
		if w.sweeper.Session != "" {
			w.changes++
		}
		w.journal.say("%s is the sweeper now, epoch %d", now.Name, now.Epoch)
	}
	w.sweeper = now
	if w.away != "" && now.Session != w.away && l.queue.NextDue >= 0 {
		w.backs[w.away] = l.at
		w.away = ""
	}
}

// bereave says that the sweeper of this session was killed.
func (w *watch) bereave(session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = session
	if w.backs == nil {
		w.backs = map[string]time.Time{}
	}
}

// back returns when another sweeper was at work, with nothing overdue left,
// after the one of this session was killed; zero if never.
func (w *watch) back(session string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.backs[session]
}

// latest returns the last look and how often the sweeper changed.
func (w *watch) latest() (look, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.changes
}
