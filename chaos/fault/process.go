package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// Signals, as in history.Strike.
const (
	sigkill = "KILL"
	sigterm = "TERM"
	sigstop = "STOP"
)

// processKinds signal processes of nodes and producers, and start new ones.
var processKinds = []Kind{
	{
		Name: "kill", Says: "kill -9; a new process of that name after For",
		Aims: []string{Holder, Sweeper, Random, Others, All, Producer}, holds: []thing{process}, strike: kill,
	},
	{
		Name: "term", Says: "SIGTERM; a new process once it has ended and For is over",
		Aims: []string{Holder, Sweeper, Random, Others, All, Producer}, holds: []thing{process}, strike: term,
	},
	{
		Name: "term-kill", Says: "SIGTERM, and kill -9 Delay later, in the middle of the drain; a new process after For",
		Aims: []string{Holder, Sweeper, Random, Others, All, Producer}, holds: []thing{process}, strike: termKill,
	},
	{
		Name: "stop", Says: "SIGSTOP, and SIGCONT after For",
		Aims: []string{Holder, Sweeper, Random, Others, All, Producer}, holds: []thing{process}, strike: stop,
	},
	{
		Name: "storm", Says: "kill -9 of the same process Times times (default 5), each new one less than 300 ms after its start",
		Aims: []string{Holder, Sweeper, Random, Producer}, holds: []thing{process}, strike: storm,
	},
	{
		Name: "rolling", Says: "a restart by SIGTERM of one node after the other, each once the one before is ready again",
		Aims: []string{All}, holds: []thing{process, way}, turns: true, strike: rolling,
	},
}

func kill(ctx context.Context, b *blow) error {
	b.signal(ctx, sigkill)
	b.last(ctx)
	return nil
}

func term(ctx context.Context, b *blow) error {
	b.signal(ctx, sigterm)
	b.last(ctx)
	return nil
}

func termKill(ctx context.Context, b *blow) error {
	b.signal(ctx, sigterm)
	if pause(ctx, b.delay(b.draw(0, b.w.drain()))) != nil {
		return nil // the new process is started once this one has ended
	}
	b.targets = filter(b.targets, func(t target) bool {
		running := t.process.Running()
		if !running {
			b.say("%s had ended before the kill", t.name)
		}
		return running
	})
	b.signal(ctx, sigkill)
	b.last(ctx)
	return nil
}

func stop(ctx context.Context, b *blow) error {
	b.signal(ctx, sigstop)
	b.last(ctx)
	return nil
}

// storm kills the same process again and again. The later ones die before they
// hold anything, mostly while they start.
func storm(ctx context.Context, b *blow) error {
	const longest = 300 * time.Millisecond
	for n := range cmp.Or(b.fault.Times, 5) {
		if n > 0 {
			if err := b.mend(ctx); err != nil {
				return err
			}
			if pause(ctx, b.draw(0, longest)) != nil {
				return nil
			}
			b.renew(ctx)
		}
		b.signal(ctx, sigkill)
	}
	return nil
}

// renew looks up which sessions the targets have now.
func (b *blow) renew(ctx context.Context) {
	seen, _ := b.w.sight(ctx) // what is not known is left out
	for i, t := range b.targets {
		b.targets[i].session, b.targets[i].sweeper = seen[t.name].Session, seen[t.name].Sweeper
	}
}

// rolling restarts all nodes in turn. One that does not come back ends it, as it
// ends a careful operator's.
func rolling(ctx context.Context, b *blow) error {
	for _, p := range b.w.Nodes {
		if ctx.Err() != nil {
			return nil
		}
		if !b.turn(ctx, p) {
			b.say("%s was left out: another fault had it in its hands", p.Name())
			continue
		}
		b.renew(ctx)
		old := b.targets[0].session
		b.signal(ctx, sigterm)
		if err := b.mend(ctx); err != nil {
			return err
		}
		if !b.w.back(ctx, p.Name(), old) && ctx.Err() == nil {
			why := fmt.Sprintf("%s was not ready %v after its restart", p.Name(), wellAfter)
			b.fail(why)
			return errors.New(why)
		}
		b.w.claims.drop(b)
	}
	return nil
}

// turn makes a node the only target, as soon as no other fault has it.
func (b *blow) turn(ctx context.Context, p Process) bool {
	t := target{name: p.Name(), process: p}
	for until := time.Now().Add(patience); !b.w.claims.take(b, b.things([]target{t})...); {
		if time.Now().After(until) || pause(ctx, look) != nil {
			return false
		}
	}
	b.targets = []target{t}
	return true
}

// signal sends a signal to all targets at once, and notes how it is undone: by
// SIGCONT, or by a new process once this one has ended.
func (b *blow) signal(ctx context.Context, sig string) {
	targets := slices.Clone(b.targets)
	ended := make([]<-chan struct{}, len(targets))
	for i, t := range targets {
		ended[i] = t.process.Ended()
	}
	b.owe(func(ctx context.Context) error {
		var all error
		for i, t := range targets {
			if sig == sigstop {
				t.process.Cont()
			} else {
				all = errors.Join(all, b.restart(ctx, t, ended[i]))
			}
		}
		return all
	})
	var group sync.WaitGroup
	for i, t := range targets {
		group.Go(func() {
			targets[i].session = b.hit(ctx, t, history.Strike{Signal: sig}, func() { send(t.process, sig) })
		})
	}
	group.Wait()
}

func send(p Process, sig string) {
	switch sig {
	case sigkill:
		p.Kill()
	case sigterm:
		p.Term()
	case sigstop:
		p.Stop()
	}
}

// restart starts a new process once the one that was signalled has ended. One
// that does not end is killed.
func (b *blow) restart(ctx context.Context, t target, ended <-chan struct{}) error {
	timer := time.NewTimer(b.w.drain() + overdrain)
	defer timer.Stop()
	select {
	case <-ended:
	case <-ctx.Done():
		return fmt.Errorf("%s was not started again: %w", t.name, ctx.Err())
	case <-timer.C:
		b.fail(fmt.Sprintf("%s had not ended %v after SIGTERM, and was killed", t.name, b.w.drain()+overdrain))
		t.process.Kill()
	}
	b.w.end(t.name, t.session)
	if t.process.Running() { // a new one, of an earlier restart
		return nil
	}
	return t.process.Start(ctx)
}

// hit does something to a target and records it, with the time right before it
// and what its session held right after it. It returns that session: the one
// that Redis shows now, since a process may have got one in the last moment.
func (b *blow) hit(ctx context.Context, t target, s history.Strike, do func()) (session string) {
	s.Phase, s.Target, s.Session, s.Sweeper = history.Hit, t.name, t.session, t.sweeper
	if t.process != nil {
		s.PID = t.process.PID()
	}
	s.T = history.Now()
	do()
	ctx = context.WithoutCancel(ctx) // the readings have bounds of their own
	seen, err := b.w.sight(ctx)
	if now, ok := seen[t.name]; ok && err == nil {
		s.Session, s.Sweeper = now.Session, s.Sweeper || now.Sweeper
	}
	if err == nil {
		s.Held, err = b.w.held(ctx, s.Session)
	}
	if err != nil {
		s.Note = strings.TrimPrefix(s.Note+"; what it held could not be read: "+err.Error(), "; ")
	}
	b.record(s)
	return s.Session
}
