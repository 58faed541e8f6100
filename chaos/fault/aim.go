package fault

import (
	"context"
	"time"
)

// producers is the name of the way that all producers share.
const producers = "producers"

// target is what a fault hits.
type target struct {
	name    string
	process Process // nil: it is no process
	way     Way     // nil: its way to Redis cannot be harmed
	session string  // "" where there is none, or none is known
	sweeper bool
}

// look is the time between two looks for somebody with a role.
const look = 100 * time.Millisecond

// choose finds targets that have the role, and claims them. It looks again until
// patience ends, and then says what is missing.
func (b *blow) choose(ctx context.Context) (why string) {
	if b.kind.turns {
		return ""
	}
	for until := time.Now().Add(patience); ; {
		found, why := b.candidates(ctx)
		if why == "" {
			if b.w.claims.take(b, b.things(found)...) {
				b.targets = found
				return ""
			}
			why = "another fault was faster"
		}
		if time.Now().After(until) || pause(ctx, look) != nil {
			return why
		}
	}
}

// candidates returns those that the fault would hit now.
func (b *blow) candidates(ctx context.Context) (found []target, why string) {
	switch {
	case b.aim == AtRedis:
		found = b.open([]target{{name: AtRedis}})
	case b.aim == Producer && b.kind.takes(process):
		found = b.one(b.open(b.running(b.w.Producers)))
	case b.aim == Producer:
		found = b.open([]target{{name: producers, way: b.w.Door}})
	default:
		return b.ofNodes(ctx)
	}
	if len(found) == 0 {
		return nil, b.aim + " was in the hands of another fault, or not there"
	}
	return found, ""
}

// ofNodes returns those of the herd that have the role now.
func (b *blow) ofNodes(ctx context.Context) (found []target, why string) {
	seen, err := b.w.sight(ctx)
	nodes := b.open(b.running(b.w.Nodes))
	for i := range nodes {
		s := seen[nodes[i].name]
		nodes[i].session, nodes[i].sweeper = s.Session, s.Sweeper
	}
	if err != nil && (b.aim == Holder || b.aim == Sweeper) {
		return nil, "Redis did not say who it is: " + err.Error()
	}
	switch b.aim {
	case Holder:
		found = b.one(b.holders(ctx, nodes))
	case Sweeper:
		found = filter(nodes, func(t target) bool { return t.sweeper })
	case Random:
		found = b.one(nodes)
	case Others:
		b.picks.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		found = nodes[:max(0, len(nodes)-1)]
	case All:
		found = nodes
	}
	if len(found) == 0 {
		return nil, "there was no node for aim " + b.aim + " that no other fault had in its hands"
	}
	return found, ""
}

// holders returns those that hold jobs.
func (b *blow) holders(ctx context.Context, nodes []target) []target {
	return filter(nodes, func(t target) bool {
		held, err := b.w.held(ctx, t.session)
		return err == nil && len(held) > 0
	})
}

// one draws one of them.
func (b *blow) one(from []target) []target {
	if len(from) == 0 {
		return nil
	}
	return []target{from[b.picks.IntN(len(from))]}
}

// running returns the processes that run.
func (b *blow) running(all []Process) []target {
	var found []target
	for _, p := range all {
		if p.Running() {
			found = append(found, target{name: p.Name(), process: p, way: b.w.Ways[p.Name()]})
		}
	}
	return found
}

// open leaves those of which no other fault has what this one would take, and
// that have what it would harm.
func (b *blow) open(from []target) []target {
	return filter(from, func(t target) bool {
		return b.w.claims.free(b, b.things([]target{t})...) && !(b.kind.takes(way) && t.way == nil)
	})
}

// things names what the fault takes of its targets.
func (b *blow) things(of []target) []string {
	var things []string
	for _, t := range of {
		for _, what := range b.kind.holds {
			things = append(things, what.of(t.name))
		}
	}
	return things
}

func filter(from []target, keep func(target) bool) []target {
	var kept []target
	for _, t := range from {
		if keep(t) {
			kept = append(kept, t)
		}
	}
	return kept
}
