package watch

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// sample writes what an operator would see. One that Redis did not answer in
// time says so and has nothing else.
func (c *Collector) sample(ctx context.Context, w *history.Writer) error {
	return each(ctx, sampleEvery, func(ctx context.Context, late time.Duration) error {
		s, err := c.look(ctx)
		if err != nil {
			s = history.Sample{Error: err.Error()}
		}
		s.T, s.Timer = history.Now(), late.Microseconds()
		return w.Write(s)
	})
}

func (c *Collector) look(ctx context.Context) (s history.Sample, err error) {
	queues, err := c.Space.Queues(ctx)
	if err != nil {
		return s, err
	}
	s = history.Sample{Jobs: map[string]int64{}, Totals: map[string]int64{}, Active: map[string]int{}, Members: map[string]int{}}
	for _, q := range queues {
		for state, n := range sizes(q) {
			s.Jobs[string(state)] += n
		}
		for name, n := range totals(q.Totals) {
			s.Totals[name] += n
		}
	}
	nodes, err := c.Space.Nodes(ctx)
	if err != nil {
		return s, err
	}
	since := map[string]time.Time{}
	for _, n := range nodes {
		if n.Sweeper {
			s.Sweeper, s.Epoch = n.Session, n.Epoch
		}
		if !n.Since.Before(since[n.Name]) { // the newest of several with this name
			since[n.Name], s.Members[n.Name] = n.Since, len(n.Members)
		}
	}
	return s, c.holdings(ctx, &s)
}

// holdings reads who holds how many jobs, and Redis's memory.
func (c *Collector) holdings(ctx context.Context, s *history.Sample) error {
	pipe := c.Redis.Pipeline()
	tokens := make([]*redis.StringSliceCmd, len(c.Queues)) // as many as all nodes have workers
	for i, q := range c.Queues {
		tokens[i] = pipe.HVals(ctx, c.Space.Key(q, string(queue.Active)))
	}
	info := pipe.Info(ctx, "memory")
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for _, cmd := range tokens {
		for _, token := range cmd.Val() {
			_, session, _ := strings.Cut(token, " ")
			s.Active[session]++
		}
	}
	_, used, _ := strings.Cut(info.Val(), "used_memory:")
	used, _, _ = strings.Cut(used, "\r\n")
	s.Memory, _ = strconv.ParseInt(used, 10, 64) // 0: this store does not say
	return nil
}

func sizes(q queue.QueueInfo) map[queue.State]int64 {
	return map[queue.State]int64{
		queue.Waiting: q.Waiting, queue.Delayed: q.Delayed, queue.Active: q.Active,
		queue.Completed: q.Completed, queue.Dead: q.Dead, queue.Cancelled: q.Cancelled,
	}
}

// totals are the counters under the names that Redis has for them.
func totals(t queue.Totals) map[string]int64 {
	return map[string]int64{
		"enqueued": t.Enqueued, "completed": t.Completed, "failed": t.Failed, "retried": t.Retried, "stalled": t.Stalled,
		"dead": t.Dead, "cancelled": t.Cancelled, "stale": t.Stale, "promoted": t.Promoted, "revived": t.Revived,
		"dropped": t.Dropped, "orphans": t.Orphans, "strays": t.Strays, "claimed": t.Claimed,
	}
}
