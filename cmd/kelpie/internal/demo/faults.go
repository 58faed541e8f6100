package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// kill is one node that was killed, and what it held.
type kill struct {
	at      time.Time // the moment before the signal
	node    string
	session string
	sweeper bool
	next    time.Time // sweeper only: when the next one was at work; zero if never
	held    []string  // ids, read once the process was gone
}

// onTheWire is how long after a kill an arrival may still be one that the killed
// node had sent. It proves no recovery.
const onTheWire = 100 * time.Millisecond

// faults kills nodes and starts their replacements.
type faults struct {
	jobs     *queue.Client
	herd     *herd
	receiver *receiver
	watch    *watch
	journal  *journal
	names    []string // of the replacements
	early    window   // of the first kill, after the start
	late     window   // of the second, after all is well again

	kills []kill // owned by run
}

// window is a span of time in which a random moment is chosen.
type window struct{ from, to time.Duration }

func (w window) draw() time.Duration {
	return w.from + time.Duration(rand.Int64N(int64(w.to-w.from)+1))
}

// run kills the node that holds the most jobs, then the sweeper. Each time a
// replacement is started when the recovery is over. It returns when the last
// replacement has joined.
func (f *faults) run(ctx context.Context) error {
	if err := pause(ctx, f.early.draw()); err != nil {
		return err
	}
	if err := f.strike(ctx, f.busiest); err != nil {
		return err
	}
	// A job with two stalls waits before it runs again: the second kill must not
	// meet one that the first had met.
	first := f.kills[0].held
	if err := await(ctx, func() (bool, error) { return f.receiver.unfinished(first) == 0, nil }); err != nil {
		return err
	}
	if err := pause(ctx, f.late.draw()); err != nil {
		return err
	}
	return f.strike(ctx, f.busySweeper)
}

// strike kills the node that choose finds, waits for the recovery and starts a
// replacement.
func (f *faults) strike(ctx context.Context, choose func(context.Context) (queue.NodeInfo, error)) error {
	victim, err := f.find(ctx, choose)
	if err != nil {
		return err
	}
	k := kill{node: victim.Name, session: victim.Session, sweeper: victim.Sweeper}
	if k.sweeper {
		f.watch.bereave(k.session)
	}
	k.at = f.herd.kill(k.node)
	if k.held, err = f.held(ctx, k.session); err != nil {
		return err
	}
	f.kills = append(f.kills, k)
	f.journal.say("kill -9 %s%s: it held %s", k.node, role(k.sweeper), count(len(k.held), "job"))
	return errors.Join(f.recovered(ctx, &f.kills[len(f.kills)-1]), f.replace(ctx))
}

func role(sweeper bool) string {
	if sweeper {
		return ", the sweeper"
	}
	return ""
}

// find asks until somebody can be chosen.
func (f *faults) find(ctx context.Context, choose func(context.Context) (queue.NodeInfo, error)) (victim queue.NodeInfo, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("no node to kill held a job for 10 s"))
	defer cancel()
	err = await(ctx, func() (bool, error) {
		victim, err = choose(ctx)
		return victim.Session != "", err
	})
	return victim, err
}

// enough jobs in the hands of a node mean that a kill will meet one: a slow one
// lasts seconds, and two quick ones at once are rare.
const enough = 2

// busiest finds the node that holds the most jobs.
func (f *faults) busiest(ctx context.Context) (most queue.NodeInfo, err error) {
	nodes, holds, err := f.holders(ctx)
	for _, n := range nodes {
		if f.herd.has(n.Name) && holds[n.Session] >= enough && holds[n.Session] > holds[most.Session] {
			most = n
		}
	}
	return most, err
}

// busySweeper finds the sweeper if it holds jobs.
func (f *faults) busySweeper(ctx context.Context) (queue.NodeInfo, error) {
	nodes, holds, err := f.holders(ctx)
	sweeper, ok := look{nodes: nodes}.sweeper()
	if err != nil || !ok || !f.herd.has(sweeper.Name) || holds[sweeper.Session] < enough {
		return queue.NodeInfo{}, err
	}
	return sweeper, nil
}

// holders returns the nodes and how many jobs each session holds.
func (f *faults) holders(ctx context.Context) ([]queue.NodeInfo, map[string]int, error) {
	holds := map[string]int{}
	for r, err := range f.jobs.Jobs(ctx, space, queue.Active) {
		if err != nil {
			return nil, nil, err
		}
		holds[r.Holder]++
	}
	nodes, err := f.jobs.Nodes(ctx)
	return nodes, holds, err
}

// held returns what a dead session holds. The read before it takes one turn of
// Redis: what the process had sent is applied by then.
func (f *faults) held(ctx context.Context, session string) ([]string, error) {
	if _, err := f.jobs.Nodes(ctx); err != nil {
		return nil, err
	}
	var ids []string
	for r, err := range f.jobs.Jobs(ctx, space, queue.Active) {
		if err != nil {
			return nil, err
		}
		if r.Holder == session {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil // a scan may show one twice
}

// recovered waits until all that the killed node held has arrived again and, if
// it was the sweeper, another one is at work.
func (f *faults) recovered(ctx context.Context, k *kill) error {
	since := k.at.Add(onTheWire)
	err := await(ctx, func() (bool, error) { return f.receiver.missing(k.held, since) == 0, nil })
	if err != nil {
		return fmt.Errorf("while the jobs of %s were waited for: %w", k.node, err)
	}
	f.journal.say("recovered: %s of %s arrived elsewhere, the last after %.2f s", count(len(k.held), "job"), k.node, time.Since(k.at).Seconds())
	if !k.sweeper {
		return nil
	}
	return await(ctx, func() (bool, error) {
		k.next = f.watch.back(k.session)
		return !k.next.IsZero(), nil
	})
}

// replace starts the next replacement and waits until it is one of them.
func (f *faults) replace(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	name := f.names[0]
	f.names = f.names[1:]
	f.journal.say("starting %s as a replacement", name)
	if _, err := f.herd.start(name); err != nil {
		return err
	}
	return f.herd.gather(ctx, f.jobs)
}
