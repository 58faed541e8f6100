package herd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// Herd is the nodes of a run. Its methods are safe for concurrent use once Open
// has returned.
type Herd struct {
	spec    Spec
	dir     string // absolute
	nodes   []*Node
	links   *Links
	network network
	watches sync.WaitGroup // one for each process
}

// New returns a herd that does not run yet. It does no I/O.
func New(s Spec) (*Herd, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	h := &Herd{spec: s}
	for i := range s.Settings.Nodes {
		h.nodes = append(h.nodes, &Node{herd: h, number: i, name: s.name(i)})
	}
	return h, nil
}

// Open makes the network and the file of the links. After an error the caller
// closes the herd as well.
func (h *Herd) Open(ctx context.Context) (err error) {
	if h.dir, err = filepath.Abs(h.spec.Dir); err != nil {
		return err
	}
	h.network = newNetwork(h.spec)
	if err := h.network.open(ctx); err != nil {
		return err
	}
	h.links, err = openLinks(filepath.Join(h.dir, linksFile), h.spec.Seed, h.names(), h.network)
	return err
}

// Host is the address on which that listens what the nodes shall reach: the
// loopback address, or this machine's on the bridge.
func (h *Herd) Host() string { return h.network.host() }

// Links are the ways of gossip between the nodes.
func (h *Herd) Links() *Links { return h.links }

// Nodes returns all nodes, those that do not run included, by number.
func (h *Herd) Nodes() []*Node { return slices.Clone(h.nodes) }

// Node returns the node of that name, or nil.
func (h *Herd) Node(name string) *Node {
	for _, n := range h.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (h *Herd) names() (names []string) {
	for _, n := range h.nodes {
		names = append(names, n.name)
	}
	return names
}

// Start starts every node that does not run.
func (h *Herd) Start(ctx context.Context) error {
	for _, n := range h.nodes {
		if n.Running() {
			continue
		}
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Healthy says what is wrong with the herd as Redis shows it: nil if each node
// that runs has a session with a fresh beat, sees each other one by gossip, and
// one of them sweeps. Sessions of nodes that ended do not count.
func (h *Herd) Healthy(nodes []queue.NodeInfo) error {
	newest := map[string]queue.NodeInfo{}
	for _, n := range nodes {
		if old, ok := newest[n.Name]; !ok || n.Since.After(old.Since) {
			newest[n.Name] = n
		}
	}
	fresh := 4 * h.beat()
	running, sweeps := h.running(), false
	for _, name := range running {
		n, ok := newest[name]
		switch {
		case !ok:
			return fmt.Errorf("%s is not registered", name)
		case n.HeartbeatAge > fresh:
			return fmt.Errorf("%s has not beaten for %v", name, n.HeartbeatAge.Round(time.Millisecond))
		}
		for _, other := range running {
			if !slices.Contains(n.Members, other) {
				return fmt.Errorf("%s does not see %s by gossip", name, other)
			}
		}
		sweeps = sweeps || n.Sweeper
	}
	if !sweeps && len(running) > 0 {
		return errors.New("no node sweeps")
	}
	return nil
}

// beat is the interval of the heartbeats.
func (h *Herd) beat() time.Duration {
	if h.spec.Settings.Heartbeat > 0 {
		return h.spec.Settings.Heartbeat
	}
	return 500 * time.Millisecond
}

func (h *Herd) running() (names []string) {
	for _, n := range h.nodes {
		if n.Running() {
			names = append(names, n.name)
		}
	}
	return names
}

// Gather waits until the herd is healthy. The error says what was wrong last.
func (h *Herd) Gather(ctx context.Context, space interface {
	Nodes(ctx context.Context) ([]queue.NodeInfo, error)
}) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		nodes, err := space.Nodes(ctx)
		if err == nil {
			err = h.Healthy(nodes)
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the nodes are not together: %w (%w)", err, context.Cause(ctx))
		}
	}
}

// killAfter is how long past its drain time-out a node may take to end.
const killAfter = 5 * time.Second

// End asks all nodes to end and waits for it; those that are stopped go on
// first. It kills what has not ended some seconds after the drain time-out, or
// when ctx ends, and says so.
func (h *Herd) End(ctx context.Context) error {
	drain := h.spec.Settings.Drain
	if drain == 0 {
		drain = 25 * time.Second
	}
	limit, cancel := context.WithTimeout(ctx, drain+killAfter)
	defer cancel()
	for _, n := range h.nodes {
		n.Cont()
		n.Term()
	}
	var faults []error
	for _, n := range h.nodes {
		select {
		case <-n.Ended():
		case <-limit.Done():
			if n.Running() {
				n.Kill()
				faults = append(faults, fmt.Errorf("%s did not end when asked to, and was killed", n.name))
			}
		}
	}
	return errors.Join(faults...)
}

// Close kills what still runs and takes the network down.
func (h *Herd) Close() error {
	for _, n := range h.nodes {
		n.Kill()
	}
	h.watches.Wait()
	if h.network == nil {
		return nil
	}
	return h.network.close()
}
