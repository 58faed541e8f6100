package demo

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/queue"
)

// workers of each node. With three nodes that is more than twice what the
// feeder keeps busy.
const workers = 10

// herd is the nodes of the demo, each a process of its own.
type herd struct {
	kennel  *process.Kennel
	program string   // kelpie
	args    []string // before "node"; for tests
	url     string
	prefix  string
	lost    func(error) // called when a node ends that nobody killed

	mu      sync.Mutex
	nodes   map[string]*process.Child
	doom    map[string]bool // may end
	victims []string        // were killed, in their order
}

// start runs one more node.
func (h *herd) start(name string) (*process.Child, error) {
	args := append(append([]string(nil), h.args...), "node", "--redis", h.url, "--prefix", h.prefix, "--name", name,
		"--workers", strconv.Itoa(workers), "--gossip", "127.0.0.1:0", "--webhook-allow", "127.0.0.0/8", "--log-level", "info")
	c, err := h.kennel.Start(process.Command{Name: name, Program: h.program, Args: args})
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes == nil {
		h.nodes, h.doom = map[string]*process.Child{}, map[string]bool{}
	}
	h.nodes[name] = c
	go func() { // ends with the process, at the latest when the kennel closes
		err := c.Err()
		h.mu.Lock()
		meant := h.doom[name]
		h.mu.Unlock()
		if !meant {
			h.lost(fmt.Errorf("node %s ended by itself: %v", name, err))
		}
	}()
	return c, nil
}

// kill ends a node as kill -9 does and returns the moment before.
func (h *herd) kill(name string) time.Time {
	h.mu.Lock()
	c := h.nodes[name]
	h.doom[name] = true
	h.victims = append(h.victims, name)
	delete(h.nodes, name)
	h.mu.Unlock()
	at := time.Now()
	c.Kill()
	return at
}

// killed returns the names of the nodes that were killed, in their order.
func (h *herd) killed() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.victims...)
}

// retire is for the end of the demo: from now on nodes may end. The kennel ends
// them.
func (h *herd) retire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.nodes {
		h.doom[name] = true
	}
}

// size returns how many nodes should be alive.
func (h *herd) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.nodes)
}

// has tells if a node of that name should be alive.
func (h *herd) has(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes[name] != nil
}

// together tells if all nodes have described themselves, see each other by
// gossip, and one of them sweeps.
func (h *herd) together(nodes []queue.NodeInfo) bool {
	found, sweeps := 0, false
	for _, n := range nodes {
		if !h.has(n.Name) {
			continue
		}
		if len(n.Members) < h.size() {
			return false
		}
		found++
		sweeps = sweeps || n.Sweeper
	}
	return sweeps && found == h.size()
}

// gather waits until the nodes are together.
func (h *herd) gather(ctx context.Context, jobs *queue.Client) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Second, fmt.Errorf("the nodes were not together within 15 s"))
	defer cancel()
	return await(ctx, func() (bool, error) {
		nodes, err := jobs.Nodes(ctx)
		return err == nil && h.together(nodes), err
	})
}

// await asks until the answer is yes. The error is that of the question or the
// cause of ctx's end.
func await(ctx context.Context, question func() (bool, error)) error {
	for {
		yes, err := question()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || yes:
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits for d or returns the cause of ctx's end.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
