package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// Bounds of the waits around a fault.
const (
	patience   = 5 * time.Second  // to find somebody with the role
	wellBefore = 5 * time.Second  // until all is well
	wellAfter  = 20 * time.Second // a node that was cut off tries again only now and then
	overdrain  = 10 * time.Second // a node may take longer than its drain before it is killed
	healing    = time.Minute      // for one repair, besides the drain
)

// blow is one fault in progress. Strike's goroutine owns it; what has its mutex
// may be used by those that hit several targets at once.
type blow struct {
	w       *World
	fault   history.Fault
	kind    Kind
	aim     string
	rand    *rand.Rand // of what the kind draws
	picks   *rand.Rand // of whom it hits; how often that is drawn depends on the run
	targets []target
	undo    []func(ctx context.Context) error // the latest last
	count   int                               // of commands that were met

	mu    sync.Mutex
	words []string // what the end of the fault has to tell
	ill   []string // what was done by force, and what did not come back
}

// Strike does one fault, from the look at the health before to the one after,
// and returns when all is mended. It may be called several times at once. When
// ctx ends, what lasts is cut short and mended. What could not be struck is
// recorded as skipped and is no error; an error says what could not be planned,
// or could not be mended.
func Strike(ctx context.Context, w *World, f history.Fault) error {
	if err := Check(f); err != nil {
		return err
	}
	b := newBlow(w, f)
	defer w.claims.drop(b)
	if why := b.ready(ctx); why != "" {
		b.record(history.Strike{Phase: history.Skip, Note: why})
		return nil
	}
	b.record(history.Strike{Phase: history.Begin})
	if err := b.kind.strike(ctx, b); err != nil && ctx.Err() == nil {
		b.record(history.Strike{Phase: history.Skip, Note: err.Error()})
	}
	err := b.heal(ctx)
	w.claims.drop(b)
	b.well(context.WithoutCancel(ctx), wellAfter)
	return err
}

func newBlow(w *World, f history.Fault) *blow {
	b := &blow{w: w, fault: f, aim: f.Aim, rand: rand.New(rand.NewPCG(f.Draw, 0)), picks: rand.New(rand.NewPCG(f.Draw, 1))}
	b.kind, _ = Find(f.Kind)
	if b.aim == "" {
		b.aim = b.kind.Aims[0]
	}
	return b
}

// ready looks at the health, waits for a moment within a heartbeat and chooses
// the targets. It says why the fault must be skipped, or nothing.
func (b *blow) ready(ctx context.Context) string {
	const over = "the time for faults was over"
	if why := b.w.lacks(b.kind); why != "" {
		return why
	}
	well := b.well(ctx, wellBefore)
	switch err := pause(ctx, b.draw(0, b.w.heartbeat())); {
	case err != nil:
		return over // and what was seen of the health meant nothing
	case !well:
		return "the set-up was not well before it"
	}
	why := b.choose(ctx)
	if ctx.Err() != nil {
		return over
	}
	return why
}

// heal undoes what is left to be undone, also when ctx has ended.
func (b *blow) heal(ctx context.Context) error {
	b.record(history.Strike{Phase: history.Heal})
	var all error
	for len(b.undo) > 0 {
		all = errors.Join(all, b.mend(ctx))
	}
	if all != nil {
		b.fail(all.Error())
		all = fmt.Errorf("fault %d, %s, could not be mended: %w", b.fault.N, b.fault.Kind, all)
	}
	b.record(history.Strike{Phase: history.End, Count: b.count, Note: strings.Join(b.words, "; ")})
	return all
}

// owe notes what undoes the next step. It is called before the step is done.
func (b *blow) owe(undo func(ctx context.Context) error) { b.undo = append(b.undo, undo) }

// mend undoes the latest step that is not undone yet, also when ctx has ended.
func (b *blow) mend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healing+b.w.drain())
	defer cancel()
	latest := b.undo[len(b.undo)-1]
	b.undo = b.undo[:len(b.undo)-1]
	return latest(ctx)
}

// say adds to the note of the end.
func (b *blow) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.words = append(b.words, fmt.Sprintf(format, args...))
}

// fail says why the set-up is not well after the fault.
func (b *blow) fail(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ill = append(b.ill, why)
}

// record writes a line; T is now unless it is set.
func (b *blow) record(s history.Strike) {
	if s.T == 0 {
		s.T = history.Now()
	}
	s.N, s.Kind, s.Aim = b.fault.N, b.fault.Kind, b.aim
	b.w.Record(s)
}

// last waits for the time that the fault is to last, or until ctx ends.
func (b *blow) last(ctx context.Context) { _ = pause(ctx, b.fault.For) }

// draw returns a time from from up to but not to.
func (b *blow) draw(from, to time.Duration) time.Duration {
	if to <= from {
		return from
	}
	return from + time.Duration(b.rand.Int64N(int64(to-from)))
}

// delay is the one of the plan, or else what the kind has by itself.
func (b *blow) delay(otherwise time.Duration) time.Duration {
	if b.fault.Delay > 0 {
		return b.fault.Delay
	}
	return otherwise
}

// pause waits; the error is ctx's.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ctx.Err()
	}
}
