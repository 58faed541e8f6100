package node

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

const benchJobs = 100_000

// BenchmarkDrain100 settles and claims no-op jobs by one node with 100 workers,
// beside the reference of the same run: x-reference is the ratio. Every job must
// have completed once. -count 5 gives a median.
func BenchmarkDrain100(b *testing.B) {
	server := redistest.Dedicated(b)
	for range b.N {
		reference := redistest.Reference(b, server.Addr(), benchJobs)
		rate := drainRate(b, server.URL(), benchJobs)
		b.ReportMetric(rate, "jobs/s")
		b.ReportMetric(reference, "reference/s")
		b.ReportMetric(rate/reference, "x-reference")
	}
}

func drainRate(b *testing.B, url string, jobs int) float64 {
	o, err := queue.ParseURL(url)
	if err != nil {
		b.Fatal(err)
	}
	rdb := redis.NewClient(o)
	defer func() { _ = rdb.Close() }()
	ctx := context.Background()
	rdb.FlushAll(ctx)
	c, err := queue.New(rdb, queue.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	requests := make([]queue.Request, jobs)
	for i := range requests {
		requests[i] = queue.Request{Kind: "noop", Payload: []byte(strings.Repeat("x", 200))}
	}
	for _, r := range c.EnqueueMany(ctx, requests) {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	n, err := New(Config{Redis: url, Name: "bench", Workers: 100, Gossip: "off", Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	Handle(n, queue.Define[[]byte]("noop"), func(context.Context, *queue.Job[[]byte]) error { return nil })
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- n.Run(running) }()
	for {
		q, err := c.Queue(ctx, "default")
		if err == nil && q.Totals.Completed == int64(jobs) {
			break
		}
		time.Sleep(5 * time.Millisecond) // a poll of the benchmark, not of a test
	}
	took := time.Since(began)
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	return float64(jobs) / took.Seconds()
}
