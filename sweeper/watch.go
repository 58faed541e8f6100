package sweeper

import (
	"slices"
	"sync"
	"time"
)

// watchGap is the longest pause between two answered beats of our own that does
// not start the watch anew, and the age from which a beat is not fresh.
const watchGap = time.Second

// leftFor is how long a Watch remembers when a session went.
const leftFor = time.Minute

// Watch measures silence: for how long this process has seen the beat of each
// session unchanged, by its own monotonic clock and over its own answered beats
// only. It is fed with the answers and makes no calls; all methods are safe for
// concurrent use. While nothing is answered nobody is silent.
type Watch struct {
	changed chan struct{}

	mu    sync.Mutex // guards all below
	gap   time.Duration
	began time.Time // first answer of the present stretch without a gap; zero before the first one
	last  time.Time // when the last answered beat was sent
	seen  map[string]sighting
	left  map[string]time.Time // sessions seen in this stretch that are none any more, and since when
}

// sighting is a beat and when the first answer that showed it was here. The last
// one counts from when it was asked for, so a slow answer shortens the silence
// that is seen and never lengthens it.
type sighting struct {
	beat  int64
	since time.Time
	moved bool // it was seen to change in this stretch, so somebody beats
}

// NewWatch returns a Watch that has seen nothing.
func NewWatch() *Watch {
	return &Watch{changed: make(chan struct{}, 1), gap: watchGap, seen: map[string]sighting{}, left: map[string]time.Time{}}
}

// Every tells the interval of the heart that feeds the Watch, if it is longer
// than half a second: two of them make a gap then.
func (w *Watch) Every(heartbeat time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap = max(watchGap, 2*heartbeat)
}

// See takes the beats of all sessions as an answered call had them. sent is the
// monotonic time before that call, got that of its answer; the map stays the
// caller's. An answer that a later one has overtaken is dropped.
func (w *Watch) See(sent, got time.Time, beats map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sent.Before(w.last) {
		return
	}
	anew := w.began.IsZero() || sent.Sub(w.last) > w.gap
	if anew {
		w.began = got
		clear(w.left)
	}
	for session := range w.seen {
		if _, ok := beats[session]; !ok {
			w.left[session] = got
			delete(w.seen, session)
		}
	}
	for session, beat := range beats {
		if old, ok := w.seen[session]; anew || !ok || old.beat != beat {
			w.seen[session] = sighting{beat: beat, since: got, moved: !anew}
		}
		delete(w.left, session)
	}
	for session, since := range w.left {
		if sent.Sub(since) > leftFor {
			delete(w.left, session)
		}
	}
	w.last = sent
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Changed has an item after each See; there is one slot, for one reader.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Sessions returns the sessions of the last answer in alphabetical order.
func (w *Watch) Sessions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, 0, len(w.seen))
	for session := range w.seen {
		names = append(names, session)
	}
	slices.Sort(names)
	return names
}

// Beat returns the beat of a session as the last answer had it.
func (w *Watch) Beat(session string) (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.seen[session]
	return s.beat, ok
}

// Silent returns for how long the beat of a session has been seen unchanged: 0
// for one that is none, and while our own beats go unanswered.
func (w *Watch) Silent(session string, now time.Time) time.Duration {
	_, silent, _ := w.look(session, now)
	return silent
}

// look is Beat and Silent of one moment; who condemns must name the beat that
// was silent and no later one.
func (w *Watch) look(session string, now time.Time) (beat int64, silent time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.seen[session]
	if !ok || w.stale(now) {
		return s.beat, 0, ok
	}
	return s.beat, max(0, w.last.Sub(s.since)), true
}

// Missing returns for how long a name has been no session: 0 for one that is,
// and while our own beats go unanswered.
func (w *Watch) Missing(name string, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.seen[name]; ok || w.stale(now) {
		return 0
	}
	if since, ok := w.left[name]; ok {
		return max(0, w.last.Sub(since))
	}
	return max(0, w.last.Sub(w.began))
}

// Fresh reports whether the beat of a session was seen to change less than 1 s
// ago: it lives, as far as one can know.
func (w *Watch) Fresh(session string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.seen[session]
	return ok && s.moved && !w.stale(now) && now.Sub(s.since) < w.gap
}

// Suspicious reports whether some beat has been unchanged for 1 s or more. The
// heart that feeds the Watch then asks every 0.1 s; not while nothing is
// answered, when every beat looks old.
func (w *Watch) Suspicious(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stale(now) {
		return false
	}
	for _, s := range w.seen {
		if now.Sub(s.since) >= w.gap {
			return true
		}
	}
	return false
}

// stale reports whether there is no answered beat to judge by; w.mu is held.
func (w *Watch) stale(now time.Time) bool {
	return w.began.IsZero() || now.Sub(w.last) > w.gap
}
