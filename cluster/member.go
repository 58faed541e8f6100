package cluster

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// State is what this node last heard of a member.
type State string

// The states. Suspects count as alive; left is final.
const (
	Alive State = "alive"
	Dead  State = "dead"
	Left  State = "left"
)

// Member is one node as this one knows it.
type Member struct {
	Name  string    // in gossip: "<node>-<boot suffix>", new at every start
	Node  string    // its node name
	Addr  string    // "IP:port" of its gossip, TCP and UDP
	Meta  Meta      // zero when it could not be read
	State State     //
	Since time.Time // of the state, by this node's clock
	Self  bool
}

const (
	keepLeft = 10 * time.Minute
	keepDead = 6 * time.Hour // so long a lost member is looked for
	maxGone  = 1000          // dead and left ones that are remembered
)

// roster is the snapshot that the callbacks fill and everybody else reads. Its
// lock is held for a copy only, and never while memberlist is called.
type roster struct {
	mu      sync.Mutex
	byName  map[string]Member
	closed  bool          // Run is over; what memberlist still says is ignored
	changed chan struct{} // one slot
}

func newRoster() *roster {
	return &roster{byName: map[string]Member{}, changed: make(chan struct{}, 1)}
}

// put records what memberlist says of a member, except that left is final.
func (r *roster) put(m Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, known := r.byName[m.Name]
	if r.closed || known && old.State == Left {
		return
	}
	if known && old.State == m.State {
		m.Since = old.Since
	}
	if known && m.State != Alive {
		m.Meta, m.Node = old.Meta, old.Node
	}
	r.byName[m.Name] = m
	r.signal()
}

// leave records that a member said goodbye. Of a stranger nothing is kept.
func (r *roster) leave(name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, known := r.byName[name]
	if r.closed || !known || m.State == Left {
		return
	}
	m.State, m.Since = Left, now
	r.byName[name] = m
	r.signal()
}

func (r *roster) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *roster) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// list returns copies, ordered by name.
func (r *roster) list() []Member {
	r.mu.Lock()
	all := make([]Member, 0, len(r.byName))
	for _, m := range r.byName {
		all = append(all, m)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (r *roster) get(name string) (Member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.byName[name]
	return m, ok
}

// dead says that a member with the session is dead, and none with it is alive
// or left.
func (r *roster) dead(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := false
	for _, m := range r.byName {
		if m.Meta.Session != session {
			continue
		}
		if m.State != Dead {
			return false
		}
		found = true
	}
	return found && session != ""
}

// prune forgets members that are gone for long, and the oldest above the limit.
func (r *roster) prune(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var gone []Member
	for name, m := range r.byName {
		switch age := now.Sub(m.Since); {
		case m.State == Alive || m.Self:
		case m.State == Left && age > keepLeft, m.State == Dead && age > keepDead:
			delete(r.byName, name)
		default:
			gone = append(gone, m)
		}
	}
	if len(gone) <= maxGone {
		return
	}
	slices.SortFunc(gone, func(a, b Member) int { return a.Since.Compare(b.Since) })
	for _, m := range gone[:len(gone)-maxGone] {
		delete(r.byName, m.Name)
	}
}

// others counts the living members beside this one.
func (r *roster) others() int {
	n := 0
	for _, m := range r.list() {
		if m.State == Alive && !m.Self {
			n++
		}
	}
	return n
}

// clashes returns the node names that two members have borne together for at
// least the given time. After a restart the old one is seen dead sooner.
func clashes(members []Member, now time.Time, together time.Duration) []string {
	seen, names := map[string]bool{}, []string{}
	for _, m := range members {
		if m.State != Alive || now.Sub(m.Since) < together {
			continue
		}
		if seen[m.Node] && !slices.Contains(names, m.Node) {
			names = append(names, m.Node)
		}
		seen[m.Node] = true
	}
	return names
}
