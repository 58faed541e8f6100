package queue_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

const benchJobs = 100_000

// BenchmarkEnqueue50 enqueues from 50 goroutines, one job a call, beside the
// reference of the same run: x-reference is the ratio. -count 5 gives a median.
func BenchmarkEnqueue50(b *testing.B) {
	server := redistest.Dedicated(b)
	for range b.N {
		reference := redistest.Reference(b, server.Addr(), benchJobs)
		rate := enqueueRate(b, server.URL(), 50, benchJobs)
		b.ReportMetric(rate, "jobs/s")
		b.ReportMetric(reference, "reference/s")
		b.ReportMetric(rate/reference, "x-reference")
	}
}

func enqueueRate(b *testing.B, url string, callers, jobs int) float64 {
	o, err := queue.ParseURL(url)
	if err != nil {
		b.Fatal(err)
	}
	rdb := redis.NewClient(o)
	defer func() { _ = rdb.Close() }()
	rdb.FlushAll(context.Background())
	c, err := queue.New(rdb, queue.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	payload := []byte(strings.Repeat("x", 200))
	var left atomic.Int64
	left.Store(int64(jobs))
	var wg sync.WaitGroup
	began := time.Now()
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := c.Enqueue(context.Background(), queue.Request{Kind: "noop", Payload: payload}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if q, err := c.Queue(context.Background(), "default"); err != nil || q.Waiting != int64(jobs) {
		b.Fatalf("%d jobs wait, want %d (%v)", q.Waiting, jobs, err)
	}
	return float64(jobs) / took.Seconds()
}
