package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// Options say which part of a run's plan a producer does, and how.
type Options struct {
	Dir    string // of the run: its run.json says seed, settings and Begin; client.jsonl gets the calls
	Number int    // of the producer, from 1 to Work.Producers
	Redis  string // address as queue.Connect takes it
	Prefix string // of the job space; default "kelpie"
	Kelpie string // program that makes the calls of the command line; default this one

	InFlight int            // calls at a time; default 32
	Patience time.Duration  // of queue.Options; default 10 s
	Log      zerolog.Logger // default silent
}

// Pauses before an item gets a new call. With Options.InFlight they bound the
// rate of calls while Redis is away.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = time.Second
)

// reviveTries is how often a job that is not among the dead yet is looked for.
const reviveTries = 4

// producer is a running one. What stands behind mu is shared by its calls.
type producer struct {
	Options
	name  string
	jobs  *queue.Client
	calls *history.Writer
	begin int64 // T
	total int   // items in the plan

	mu    sync.Mutex
	ids   map[int]string // by item: what its enqueue returned
	tries map[int]int    // by item: calls that were begun
	done  map[int]bool   // by item: by an earlier process of this number

	failed context.CancelCauseFunc // ends all: the history cannot be written
}

// Produce makes the calls of one producer and returns when each item has its
// end. When ctx ends first, calls in flight are recorded as unknown, and the
// cause is returned.
func Produce(ctx context.Context, o Options) error {
	text, err := os.ReadFile(filepath.Join(o.Dir, history.RunFile))
	if err != nil {
		return err
	}
	var run history.Run
	if err := json.Unmarshal(text, &run); err != nil {
		return fmt.Errorf("%s: %w", history.RunFile, err)
	}
	if n := max(run.Settings.Work.Producers, 1); o.Number < 1 || o.Number > n {
		return fmt.Errorf("producer %d: the run has 1 to %d", o.Number, n)
	}
	if o.Kelpie == "" {
		if o.Kelpie, err = os.Executable(); err != nil {
			return err
		}
	}
	rdb, err := queue.Connect(o.Redis)
	if err != nil {
		return err
	}
	defer rdb.Close()
	jobs, err := queue.New(rdb, queue.Options{Prefix: o.Prefix, Patience: o.Patience, Log: o.Log})
	if err != nil {
		return err
	}
	defer jobs.Close()
	calls, err := history.Append(filepath.Join(o.Dir, history.ClientFile))
	if err != nil {
		return err
	}
	defer calls.Close()
	plan := Plan(run.Seed, run.Settings)
	p := &producer{
		Options: o, name: fmt.Sprintf("p%d", o.Number), jobs: jobs, calls: calls, total: len(plan),
		begin: cmp.Or(run.Begin, history.Now()), ids: map[int]string{}, tries: map[int]int{}, done: map[int]bool{},
	}
	p.InFlight, p.Prefix = cmp.Or(o.InFlight, 32), jobs.Prefix()
	if err := p.resume(plan); err != nil {
		return err
	}
	return p.run(ctx, p.share(plan))
}

// share returns what is left of this producer's part of the plan, by calls.
func (p *producer) share(plan []Item) (calls [][]Item) {
	at := map[int]int{} // group -> place in calls
	for _, it := range plan {
		if it.Producer != p.Number || p.done[it.N] {
			continue
		}
		if i, ok := at[it.Group]; ok && it.Group != 0 {
			calls[i] = append(calls[i], it)
			continue
		}
		at[it.Group] = len(calls)
		calls = append(calls, []Item{it})
	}
	return calls
}

// run begins each call at its time, as far as slots are free.
func (p *producer) run(ctx context.Context, calls [][]Item) error {
	ctx, p.failed = context.WithCancelCause(ctx)
	defer p.failed(nil)
	slots := make(chan struct{}, p.InFlight)
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, call := range calls {
		if err := pause(ctx, call[0].At-p.elapsed()); err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wg.Go(func() {
			defer func() { <-slots }()
			p.finish(ctx, call)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// elapsed is the time since Begin, negative before it.
func (p *producer) elapsed() time.Duration {
	return time.Duration(history.Now()-p.begin) * time.Microsecond
}

// finish calls until each item has its end, or ctx ends.
func (p *producer) finish(ctx context.Context, items []Item) {
	wait := firstPause
	for {
		ended, err := p.call(ctx, items)
		if err != nil {
			p.failed(fmt.Errorf("the history cannot be written: %w", err))
			return
		}
		var left []Item
		for i, it := range items {
			if p.again(it, ended[i]) {
				left = append(left, it)
			}
		}
		if len(left) == 0 || pause(ctx, wait) != nil {
			return
		}
		items, wait = left, min(2*wait, longestPause)
	}
}

// again says whether an item gets a new call. One without an outcome had none
// to make.
func (p *producer) again(it Item, e ending) bool {
	switch {
	case !e.called || e.phase == history.OK:
		return false
	case it.Verb == Revive:
		p.mu.Lock()
		defer p.mu.Unlock()
		return e.phase == history.Fail && p.tries[it.N] < reviveTries
	case it.Verb == Reschedule:
		return false
	case e.phase == history.Unknown:
		return it.ID != ""
	}
	return !e.final
}

// pause returns after d, or when ctx ends, with the cause.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
