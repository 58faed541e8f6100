package demo

import (
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/queue"
)

// seen is a look with one node that holds the lock.
func seen(at time.Duration, session string, epoch int64, nextDue time.Duration) look {
	l := look{at: after(at), queue: queue.QueueInfo{NextDue: nextDue}}
	if session != "" {
		l.nodes = []queue.NodeInfo{{Name: "other", Session: "other-1"}, {Name: session, Session: session, Sweeper: true, Epoch: epoch}}
	}
	return l
}

func TestTheWatchFollowsTheSweeper(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	for name, tt := range map[string]struct {
		looks   []look
		kill    int // a is killed before that look
		changes int
		back    time.Duration // 0: never
	}{
		"the first election is no change":             {[]look{seen(0, "", 0, 0), seen(s, "a", 5, s)}, 9, 0, 0},
		"a new term of the same sweeper is no change": {[]look{seen(0, "a", 5, s), seen(s, "a", 6, s)}, 9, 0, 0},
		"another session is one":                      {[]look{seen(0, "a", 5, s), seen(s, "b", 6, s), seen(2*s, "a", 7, s)}, 9, 2, 0},
		"a lock without a term is not yet one":        {[]look{seen(0, "a", 5, s), seen(s, "b", 5, s)}, 9, 0, 0},
		"the next one is at work when nothing is overdue": {
			[]look{seen(0, "a", 5, s), seen(s, "a", 5, -ms), seen(2*s, "", 5, -s), seen(3*s, "b", 5, -s), seen(4*s, "b", 6, -s), seen(5*s, "b", 6, 10*ms)}, 1, 1, 5 * s},
		"a dead one is not its own successor": {[]look{seen(0, "a", 5, s), seen(s, "a", 5, s), seen(2*s, "a", 5, s)}, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watch{journal: &journal{}}
			for i, l := range tt.looks {
				if i == tt.kill {
					w.bereave("a")
				}
				w.see(l)
			}
			_, changes := w.latest()
			back := w.back("a")
			if changes != tt.changes || back.IsZero() != (tt.back == 0) || tt.back != 0 && !back.Equal(after(tt.back)) {
				t.Errorf("%d changes, back at %v, want %d and %v", changes, back, tt.changes, tt.back)
			}
		})
	}
}

func TestTheHerdIsTogetherWhenAllSeeAll(t *testing.T) {
	t.Parallel()
	h := &herd{nodes: map[string]*process.Child{"a": nil, "b": nil}}
	h.nodes["a"], h.nodes["b"] = &process.Child{}, &process.Child{}
	node := func(name string, members int, sweeps bool) queue.NodeInfo {
		return queue.NodeInfo{Name: name, Session: name + "-1", Members: make([]string, members), Sweeper: sweeps}
	}
	for name, tt := range map[string]struct {
		nodes []queue.NodeInfo
		want  bool
	}{
		"all there":                       {[]queue.NodeInfo{node("a", 2, true), node("b", 2, false)}, true},
		"one is missing":                  {[]queue.NodeInfo{node("a", 2, true)}, false},
		"one does not see the other":      {[]queue.NodeInfo{node("a", 2, true), node("b", 1, false)}, false},
		"nobody sweeps":                   {[]queue.NodeInfo{node("a", 2, false), node("b", 2, false)}, false},
		"a dead one that sweeps is none":  {[]queue.NodeInfo{node("a", 2, false), node("b", 2, false), node("c", 3, true)}, false},
		"a dead one besides does no harm": {[]queue.NodeInfo{node("a", 2, true), node("b", 2, false), node("c", 0, false)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := h.together(tt.nodes); got != tt.want {
				t.Errorf("together = %v, want %v", got, tt.want)
			}
		})
	}
}
