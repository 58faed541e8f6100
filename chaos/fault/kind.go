package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// Aims of a fault.
const (
	Holder   = "holder"   // a node that holds jobs
	Sweeper  = "sweeper"  // the node that holds the lock
	Random   = "random"   // any node
	Others   = "others"   // all nodes but one
	All      = "all"      // all nodes
	AtRedis  = "redis"    // Redis itself
	Producer = "producer" // a producer; for ways, that of all producers
)

// Needs of a kind.
const (
	OwnRedis  = "a Redis of the run's own"
	Replicas  = "a Redis with replicas and Sentinels"
	OwnWays   = "a way to Redis that can be harmed"
	OwnGossip = "gossip that can be harmed"
	Netns     = "a network namespace for each node"
)

// Kind is one way to break something.
type Kind struct {
	Name  string   // as in history.Fault
	Says  string   // one sentence
	Aims  []string // that it can have; the first one is the default
	Needs []string // of the World; empty: nothing but processes

	holds []thing // what it takes of each target
	turns bool    // it takes its targets one after the other, by itself

	// strike does it, waits for what it lasts, and returns; what is left to be
	// undone it has told to the blow. An error says why it could not be done.
	strike func(ctx context.Context, b *blow) error
}

// takes tells if the kind has such a thing in its hands.
func (k Kind) takes(what thing) bool { return slices.Contains(k.holds, what) }

// Kinds returns all kinds, by family.
func Kinds() []Kind {
	return slices.Concat(processKinds, wayKinds, commandKinds, []Kind{lastWordsKind}, gossipKinds, redisKinds)
}

// Find returns the kind of that name.
func Find(name string) (Kind, bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Check says what is wrong with a planned fault, before anything is struck.
func Check(f history.Fault) error {
	k, ok := Find(f.Kind)
	if !ok {
		return fmt.Errorf("fault %d: there is no kind %q", f.N, f.Kind)
	}
	if f.Aim != "" && !slices.Contains(k.Aims, f.Aim) {
		return fmt.Errorf("fault %d: %s cannot aim at %q, but at %s", f.N, f.Kind, f.Aim, strings.Join(k.Aims, ", "))
	}
	return nil
}

// lacks says which need of a kind the world does not have, or nothing.
func (w *World) lacks(k Kind) string {
	has := map[string]bool{
		OwnRedis: w.Redis != nil, Replicas: w.Failover != nil,
		OwnWays: len(w.Ways) > 0 || w.Door != nil, OwnGossip: w.Links != nil, Netns: len(w.Cables) > 0,
	}
	for _, need := range k.Needs {
		if !has[need] {
			return "it needs " + need
		}
	}
	return ""
}
