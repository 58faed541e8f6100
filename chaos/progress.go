package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// look is how often the state of a run is shown.
const look = 500 * time.Millisecond

// progress is what a run shows of itself while it goes on. Its mutex also keeps
// the calls of Tell and Show one at a time.
type progress struct {
	mu    sync.Mutex
	state Progress
	begin time.Time // of the faults; zero before
}

// tell says a sentence to whom listens.
func (r *run) tell(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Tell != nil {
		r.Tell(fmt.Sprintf(format, args...))
	}
}

// step says what the run is at.
func (r *run) step(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Step = name
	r.show()
}

// show needs the lock.
func (r *run) show() {
	if r.Show == nil {
		return
	}
	p := r.state
	p.Scenario, p.Seed, p.Planned, p.Duration = r.plan.Scenario, r.plan.Seed, len(r.plan.Plan), r.plan.Settings.Duration
	p.Now = slices.Clone(p.Now)
	if !r.begin.IsZero() {
		p.Elapsed = time.Since(r.begin)
	}
	r.Show(p)
}

// struck takes a line of faults.jsonl into account and tells what a person wants
// to know of it.
func (r *run) struck(s history.Strike) {
	if text := strikeText(s); text != "" {
		r.tell("%s", text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch s.Phase {
	case history.Begin:
		r.state.Struck++
		r.state.Now = append(r.state.Now, s.Kind)
	case history.End:
		if i := slices.Index(r.state.Now, s.Kind); i >= 0 {
			r.state.Now = slices.Delete(r.state.Now, i, i+1)
		}
	}
}

// strikeText is a line of faults.jsonl for people, or nothing.
func strikeText(s history.Strike) string {
	switch {
	case s.Phase == history.Hit:
		text := fmt.Sprintf("fault %d: %s %s", s.N, s.Kind, s.Target)
		if s.Sweeper {
			text += ", the sweeper"
		}
		if len(s.Held) > 0 {
			text += fmt.Sprintf(", which held %d jobs", len(s.Held))
		}
		return text
	case s.Phase == history.Skip:
		return fmt.Sprintf("fault %d: %s skipped: %s", s.N, s.Kind, s.Note)
	case s.Phase == history.Health && !s.OK:
		return fmt.Sprintf("fault %d: %s: not well: %s", s.N, s.Kind, s.Note)
	}
	return ""
}

// watch shows the state until ctx ends. It needs nothing but Redis, and where
// that does not answer it shows what it knew.
func (r *run) watch(ctx context.Context, space *queue.Client) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		r.glance(ctx, space)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *run) glance(ctx context.Context, space *queue.Client) {
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	var accepted, ended, active int64
	queues, err := space.Queues(ctx)
	for _, q := range queues {
		accepted += q.Totals.Enqueued
		ended += q.Totals.Completed + q.Totals.Dead + q.Totals.Cancelled - q.Totals.Revived
		active += q.Active
	}
	sweeper := ""
	nodes, fault := space.Nodes(ctx)
	for _, n := range nodes {
		if n.Sweeper {
			sweeper = n.Name
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.state.Accepted, r.state.Ended, r.state.Active = accepted, ended, active
	}
	if fault == nil {
		r.state.Sweeper = sweeper
	}
	r.show()
}
