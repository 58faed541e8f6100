package chaos

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/kelpiehq/kelpie/chaos/process"
)

// producer is one process that enqueues. A new process of its name goes on with
// what is left of its part.
type producer struct {
	kennel  *process.Kennel
	command process.Command
	broken  func(error) // called when it ends with an error that nobody meant

	mu    sync.Mutex
	child *process.Child
	doom  bool // it may end
	lives sync.WaitGroup
}

// openProducers makes the producers; they do not run yet.
func (s *stage) openProducers() {
	address := s.store.url
	if s.door != nil {
		address = s.store.through(s.door.Addr())
	}
	for n := 1; n <= s.plan.Settings.Work.Producers; n++ {
		s.producers = append(s.producers, &producer{
			kennel: s.kennel, broken: func(err error) { s.fail(err) },
			command: process.Command{Name: "producer-" + strconv.Itoa(n), Program: s.Kelpie, Args: []string{
				"chaos", "produce", "--dir", s.Dir, "--number", strconv.Itoa(n), "--redis", address, "--prefix", s.prefix,
			}},
		})
	}
}

func (p *producer) Name() string { return p.command.Name }

// Start starts a process that does the rest of the part.
func (p *producer) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs() {
		return fmt.Errorf("%s runs already", p.command.Name)
	}
	child, err := p.kennel.Start(p.command)
	if err != nil {
		return err
	}
	p.child, p.doom = child, false
	p.lives.Go(func() {
		err := child.Err()
		p.mu.Lock()
		meant := p.doom && p.child == child
		p.mu.Unlock()
		if err != nil && !meant {
			p.broken(fmt.Errorf("%s: %w: %s", p.command.Name, err, child.LastWords(3)))
		}
	})
	return nil
}

// runs needs the lock.
func (p *producer) runs() bool {
	if p.child == nil {
		return false
	}
	select {
	case <-p.child.Ended():
		return false
	default:
		return true
	}
}

// Running tells if the process is there.
func (p *producer) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs()
}

// PID is that of the last process, 0 before the first.
func (p *producer) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil {
		return 0
	}
	return p.child.PID()
}

// Ended is closed once the last process is gone; before the first, too.
func (p *producer) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil {
		never := make(chan struct{})
		close(never)
		return never
	}
	return p.child.Ended()
}

// Kill ends the process and the commands that it runs, as kill -9 does.
func (p *producer) Kill() { p.strike(true, (*process.Child).Kill) }

// Term asks it to end.
func (p *producer) Term() { p.strike(true, (*process.Child).Term) }

// Stop freezes it.
func (p *producer) Stop() { p.strike(false, (*process.Child).Stop) }

// Cont lets it go on.
func (p *producer) Cont() { p.strike(false, (*process.Child).Cont) }

func (p *producer) strike(ends bool, how func(*process.Child)) {
	p.mu.Lock()
	child := p.child
	if p.runs() && ends {
		p.doom = true
	}
	p.mu.Unlock()
	if child != nil {
		how(child)
	}
}

// retire kills what still runs and waits for its end.
func (p *producer) retire() {
	p.Kill()
	p.lives.Wait()
}
