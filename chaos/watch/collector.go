package watch

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// How often the collector looks.
const (
	logEvery    = 50 * time.Millisecond
	sampleEvery = 250 * time.Millisecond
	clockEvery  = 250 * time.Millisecond

	oneLook = 2 * time.Second  // bound of one look at Redis
	ending  = 10 * time.Second // bound of the last look at the logs
)

// Whole is the queue name that stands for sessions, lock and epoch.
const Whole = "cluster"

// Collector writes log.jsonl, samples.jsonl and clock.jsonl of a run. All fields
// are needed; the connections stay the caller's to close.
type Collector struct {
	Dir    string
	Queues []string
	Space  *queue.Client // on Redis
	Redis  redis.UniversalClient
	Clock  redis.UniversalClient // another one, so that no other call delays a reading; one connection is enough
}

// Run collects until ctx ends. Then it reads the logs to their end, and returns
// nil if it could. Before, only a file that cannot be written makes it return.
func (c *Collector) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := []struct {
		file string
		run  func(context.Context, *history.Writer) error
	}{
		{history.LogFile, c.follow}, {history.SamplesFile, c.sample}, {history.ClockFile, c.clock},
	}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() {
			defer cancel()
			w, err := history.Append(filepath.Join(c.Dir, part.file))
			if err != nil {
				errs[i] = err
				return
			}
			errs[i] = errors.Join(part.run(ctx, w), w.Close())
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// each calls look again and again until ctx ends, with the start of two looks at
// least so far apart. late is how much later than asked for the timer was.
func each(ctx context.Context, every time.Duration, look func(ctx context.Context, late time.Duration) error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		start := time.Now()
		bounded, stop := context.WithTimeout(ctx, oneLook)
		err := look(bounded, max(start.Sub(next), 0))
		stop()
		if err != nil {
			return err
		}
		next = start.Add(every)
		if now := time.Now(); next.Before(now) {
			next = now
		}
		timer.Reset(time.Until(next))
	}
}

// clock writes pairs of the two clocks. A reading that failed says nothing.
func (c *Collector) clock(ctx context.Context, w *history.Writer) error {
	return each(ctx, clockEvery, func(ctx context.Context, _ time.Duration) error {
		tick := history.Tick{T: history.Now()}
		at, err := c.Clock.Time(ctx).Result()
		if err != nil {
			return nil
		}
		tick.After, tick.US = history.Now(), at.UnixMicro()
		return w.Write(tick)
	})
}
