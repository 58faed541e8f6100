package fault

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

const (
	answer = 2 * time.Second // Redis has so long to answer one question
	fresh  = 4               // heartbeats: a beat that is older is none
)

// eyes keep what is known of sessions over the moments when Redis is away.
type eyes struct {
	mu    sync.Mutex
	last  map[string]queue.NodeInfo // by node: as it was last seen
	ended map[string]bool           // sessions of processes that a fault has killed
}

// sight returns the newest session of each node, by the node's name, without
// those of killed processes. With an error it is what was last seen.
func (w *World) sight(ctx context.Context) (map[string]queue.NodeInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	infos, err := w.Space.Nodes(ctx)
	w.eyes.mu.Lock()
	defer w.eyes.mu.Unlock()
	if err == nil {
		w.eyes.last = map[string]queue.NodeInfo{}
	}
	for _, n := range infos {
		known, ok := w.eyes.last[n.Name]
		if !w.eyes.ended[n.Session] && (!ok || n.HeartbeatAge < known.HeartbeatAge) {
			w.eyes.last[n.Name] = n
		}
	}
	seen := map[string]queue.NodeInfo{}
	for name, n := range w.eyes.last {
		seen[name] = n
	}
	return seen, err
}

// end notes that the process of a session was killed: its last beat means
// nothing any more.
func (w *World) end(node, session string) {
	w.eyes.mu.Lock()
	defer w.eyes.mu.Unlock()
	if w.eyes.ended == nil {
		w.eyes.ended = map[string]bool{}
	}
	w.eyes.ended[session] = true
	delete(w.eyes.last, node)
}

// held returns "<queue>/<id>" of what a session holds now.
func (w *World) held(ctx context.Context, session string) ([]string, error) {
	if session == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	var held []string
	for _, q := range w.Settings.Queues {
		for id, err := range w.Space.HeldBy(ctx, q, session) {
			if err != nil {
				return held, err
			}
			held = append(held, q+"/"+id)
		}
	}
	slices.Sort(held)
	return slices.Compact(held), nil // a scan may show one twice
}

// well waits until all is well, at most so long, and records how it was. It
// records nothing when ctx ends: that is no news of the health.
func (b *blow) well(ctx context.Context, within time.Duration) bool {
	s := history.Strike{Phase: history.Health}
	wrong := b.w.wrong(ctx)
	for until := time.Now().Add(within); len(wrong) > 0; wrong = b.w.wrong(ctx) {
		if time.Now().After(until) || pause(ctx, look) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return false
	}
	wrong = append(wrong, b.ill...)
	s.OK, s.Note = len(wrong) == 0, strings.Join(wrong, "; ")
	if s.OK && !b.w.claims.free(nil, string(redis)) {
		s.Note = "not looked at: Redis is in the hands of another fault"
	}
	b.record(s)
	return s.OK
}

// wrong lists what is not as it should be, apart from what a fault has in its
// hands now.
func (w *World) wrong(ctx context.Context) []string {
	if !w.claims.free(nil, string(redis)) {
		return nil
	}
	seen, err := w.sight(ctx)
	if err != nil {
		if !w.claims.free(nil, string(redis)) { // since just now
			return nil
		}
		return []string{"Redis does not answer: " + err.Error()}
	}
	var wrong []string
	for _, p := range w.Nodes {
		n, ok := seen[p.Name()]
		switch {
		case !w.claims.free(nil, process.of(p.Name()), way.of(p.Name())):
		case !p.Running():
			wrong = append(wrong, p.Name()+" does not run")
		case !ok || n.HeartbeatAge > fresh*w.heartbeat():
			wrong = append(wrong, p.Name()+" does not beat")
		}
	}
	return wrong
}

// back waits until a node is ready under another session than the old one: it
// beats, takes jobs, and has found somebody by gossip, if anybody can.
func (w *World) back(ctx context.Context, node, old string) bool {
	for until := time.Now().Add(wellAfter); ; {
		seen, err := w.sight(ctx)
		n, ok := seen[node]
		alone := n.Gossip == "" || len(w.Nodes) == 1 || !w.claims.free(nil, string(gossip))
		if err == nil && ok && n.Session != old && n.HeartbeatAge <= fresh*w.heartbeat() &&
			len(n.Queues) > 0 && !n.Draining && (alone || len(n.Members) > 1) {
			return true
		}
		if time.Now().After(until) || pause(ctx, look) != nil {
			return false
		}
	}
}
