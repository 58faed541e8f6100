package sweeper

import (
	"context"
	"slices"
	"time"
)

const (
	pokeWait     = time.Second           // one blocking call, at most; Redis knows whole seconds here
	pokePatience = 2 * time.Second       // for its answer, beyond that
	rosterWait   = 50 * time.Millisecond // for the first list of queues
)

// awaitPokes tells the agenda which queue has a new earliest due time. A blocking
// call cannot be cut short, so it may outlive the term by a second, and what it
// gets then is for the next term of this node.
func (t *term) awaitPokes(ctx context.Context) {
	failures := 0
	for turn := 0; ctx.Err() == nil; turn++ {
		queues := t.agenda.queues()
		if len(queues) == 0 {
			pause(ctx, rosterWait, nil)
			continue
		}
		if !t.awaitPoke(ctx, rotated(queues, turn)) {
			pause(ctx, pauseAfter(failures), nil)
			failures++
			continue
		}
		if failures > 0 { // a poke may have been taken and never have arrived
			t.agenda.pokeAll(time.Now())
		}
		failures = 0
	}
}

// rotated begins with another queue each turn: Redis serves the first list that
// has something, and must not serve that one for ever.
func rotated(queues []string, turn int) []string {
	if len(queues) == 0 {
		return nil
	}
	n := turn % len(queues)
	return slices.Concat(queues[n:], queues[:n])
}

func (t *term) awaitPoke(ctx context.Context, queues []string) bool {
	call, cancel := context.WithTimeout(ctx, pokeWait+pokePatience)
	defer cancel()
	q, err := t.s.o.Poke.AwaitPoke(call, queues, pokeWait)
	if err != nil {
		t.note(ctx, "wait for a poke", err)
		return false
	}
	t.s.trouble.over("wait for a poke")
	if now := t.s.term.Load(); q != "" && now != nil {
		now.agenda.poke(q, time.Now())
	}
	return true
}

// note tells an error, unless it is only that the term is over.
func (t *term) note(ctx context.Context, step string, err error) {
	if ctx.Err() == nil {
		t.s.trouble.note(step, err)
	}
}
