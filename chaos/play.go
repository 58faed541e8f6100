package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/watch"
	"github.com/kelpiehq/kelpie/queue"
)

// play starts nodes and collector, performs the plan, and waits for rest.
func (s *stage) play(ctx context.Context) error {
	if err := s.gather(ctx); err != nil {
		return err
	}
	collecting, stop := context.WithCancel(context.WithoutCancel(ctx)) // it ends after the nodes
	var aside sync.WaitGroup
	aside.Go(func() { s.watch(collecting, s.space) })
	collector := &watch.Collector{Dir: s.Dir, Queues: s.plan.Settings.Queues, Space: s.space, Redis: s.rdb, Clock: s.clock}
	collected := make(chan error, 1)
	go func() { // ends below
		err := collector.Run(collecting)
		if err != nil {
			s.fail(err)
		}
		collected <- err
	}()
	err := s.strike(ctx)
	if err == nil {
		err = s.settle(ctx)
	}
	s.step("stopping")
	if err == nil {
		err = s.herd.End(ctx)
	}
	s.silence() // so that the log has an end
	stop()
	aside.Wait()
	return errors.Join(err, <-collected)
}

// gather starts the nodes and waits until they are together.
func (s *stage) gather(ctx context.Context) error {
	if err := s.herd.Start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, gathering)
	defer cancel()
	if err := s.herd.Gather(ctx, s.space); err != nil {
		return err
	}
	for _, n := range s.herd.Nodes() {
		if !n.Running() {
			return fmt.Errorf("node %s ended before anything had begun: its log is in %s", n.Name(), s.kennel.Dir())
		}
	}
	return nil
}

// silence kills whatever still speaks to Redis.
func (s *stage) silence() {
	for _, p := range s.producers {
		p.retire()
	}
	for _, n := range s.herd.Nodes() {
		n.Kill()
	}
}

// strike lets producers and faults run, for the duration of the run and until the
// last fault is mended.
func (s *stage) strike(ctx context.Context) error {
	s.plan.Begin = history.Now()
	if err := s.save(); err != nil { // the producers read it
		return err
	}
	s.mu.Lock()
	s.begin = time.Now()
	s.mu.Unlock()
	s.step("striking")
	for _, p := range s.producers {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	var faults sync.WaitGroup
	for _, f := range s.plan.Plan {
		faults.Go(func() {
			if s.until(ctx, f.At) != nil {
				return
			}
			if err := fault.Strike(ctx, s.world, f); err != nil {
				s.fail(err)
			}
		})
	}
	err := s.until(ctx, s.plan.Settings.Duration)
	faults.Wait()
	return err
}

// until waits for a moment after the begin; the error is the cause of ctx's end.
func (s *stage) until(ctx context.Context, at time.Duration) error {
	timer := time.NewTimer(time.Until(s.begin.Add(at)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// settle waits until the producers are done and nothing is left to run, or the
// bound is over, and writes final.json.
func (s *stage) settle(ctx context.Context) error {
	s.step("settling")
	begun := history.Now()
	limit, cancel := context.WithTimeout(ctx, s.plan.Settings.Settle)
	defer cancel()
	for _, p := range s.producers {
		select {
		case <-p.Ended():
		case <-limit.Done():
		}
	}
	s.rest(limit)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	waited := history.Now() - begun
	final, err := watch.Final(ctx, s.rdb, s.space, s.plan.Settings.Queues)
	if err != nil {
		return err
	}
	final.Waited = waited
	for _, p := range s.producers {
		final.Settled = final.Settled && !p.Running()
	}
	return history.Save(filepath.Join(s.Dir, history.FinalFile), final)
}

// rest waits until no queue has anything that waits, is delayed or active.
func (s *stage) rest(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		left := int64(-1)
		if queues, err := s.space.Queues(ctx); err == nil {
			left = unsettled(queues)
		}
		if left == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func unsettled(queues []queue.QueueInfo) int64 {
	var n int64
	for _, q := range queues {
		n += q.Waiting + q.Delayed + q.Active
	}
	return n
}
