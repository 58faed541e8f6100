package sweeper

import (
	"slices"
	"sync"
)

// ward has the dead sessions whose jobs are to be recovered, each once, in the
// order of arrival.
type ward struct {
	wake chan struct{}

	mu       sync.Mutex
	sessions []string
}

func newWard() *ward { return &ward{wake: make(chan struct{}, 1)} }

func (w *ward) add(session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.sessions, session) {
		w.sessions = append(w.sessions, session)
	}
	poke(w.wake)
}

func (w *ward) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.sessions
	w.sessions = nil
	return all
}
