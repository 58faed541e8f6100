package fault

import (
	"context"
	"iter"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault/herd"
	"github.com/kelpiehq/kelpie/chaos/fault/proxy"
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// World is all that can be struck, and how to see it. What is nil or empty is
// not there: a fault that needs it is skipped, and its note says so. The fields
// must not change once the first fault strikes, nor the World be copied then.
type World struct {
	Nodes     []Process                       // of the herd
	Producers []Process                       // Start goes on with what is left of their work
	Ways      map[string]Way                  // by the name of the node: its own way to Redis
	Door      Way                             // the producers' way to Redis
	Links     Links                           // gossip between the nodes
	Cables    map[string]Cable                // by the name of the node; empty: the nodes share one network
	Redis     Redis                           // nil: it is somebody's own, and nothing is done to it
	Failover  func(ctx context.Context) error // kills the master; returns when another serves and the old one is its replica. nil: no replicas
	Space     Space                           // over a way to Redis that no fault cuts
	Settings  history.Settings                // Queues, Heartbeat (default 500 ms), Drain (default 25 s)

	// Record takes each line of faults.jsonl as it happens. Faults at work at
	// the same time call it at once.
	Record func(history.Strike)

	claims claims
	eyes   eyes
}

// Space is how the job space is read; *queue.Client is one.
type Space interface {
	Nodes(ctx context.Context) ([]queue.NodeInfo, error)
	HeldBy(ctx context.Context, queue, session string) iter.Seq2[string, error]
}

// Process is a process by its name, which it keeps over restarts. A signal does
// nothing to one that does not run.
type Process interface {
	Name() string
	Start(ctx context.Context) error // a new process of that name; an error if one runs
	Kill()                           // kill -9, also of one that is stopped; waits until it is gone
	Term()                           // SIGTERM, does not wait
	Stop()                           // SIGSTOP
	Cont()                           // SIGCONT
	Running() bool                   // one that is stopped runs
	PID() int                        // of the last one started; 0 before the first
	Ended() <-chan struct{}          // closed once the last one started is gone
}

// Way is a way to Redis that can be harmed; *proxy.Proxy is one.
type Way interface {
	SetUp(w proxy.Way)
	SetDown(w proxy.Way)
	Cut()
	Mend() error
	Aim(s proxy.Shot) *proxy.Aimed
}

// Links are the ways of gossip between nodes, by their names; *herd.Links is one.
type Links interface {
	Set(from, to string, l herd.Link) error // the way back is another
}

// Cable is what ties a node's machine to all others; *herd.Node is one, where
// each node has a network namespace.
type Cable interface {
	Unplug() error
	Plug() error
}

// Redis is a server of the run's own; *server.Redis is one.
type Redis interface {
	Kill()
	Restart(ctx context.Context) error
	Pause()
	Resume()
	Full(ctx context.Context, on bool) error
	Disk(ctx context.Context, full bool) error
	Reload(ctx context.Context, d time.Duration) error
	Busy(ctx context.Context, d time.Duration) error
	FlushScripts(ctx context.Context) error
	FlushAll(ctx context.Context) error
	Snapshot(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// heartbeat is the time between two beats of a node.
func (w *World) heartbeat() time.Duration {
	if w.Settings.Heartbeat > 0 {
		return w.Settings.Heartbeat
	}
	return 500 * time.Millisecond
}

// drain is how long a node that stops may take.
func (w *World) drain() time.Duration {
	if w.Settings.Drain > 0 {
		return w.Settings.Drain
	}
	return 25 * time.Second
}
