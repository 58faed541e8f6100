package queue

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// A waiting or delayed job with a payload of 200 bytes, its kind and options as
// usual, takes at most 500 bytes of Redis, and two million delayed ones fit in a
// gigabyte: by the measure of 100,000, and in full with KELPIE_TEST_LONG=1.
func TestAJobTakesAtMost500BytesOfRedis(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"waiting": 0, "delayed": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMemory(t)
			empty := m.used()
			m.fill(100_000, JobOptions{Queue: "mails", Delay: delay})
			each := float64(m.used()-empty) / 100_000
			t.Logf("%.0f bytes per %s job, %.0f MiB for two million", each, name, each*2e6/(1<<20))
			if each > 500 {
				t.Errorf("%.0f bytes per %s job, want at most 500", each, name)
			}
			if need := float64(empty) + each*2e6; need > 1<<30 {
				t.Errorf("two million jobs take %.0f bytes, want at most a gigabyte", need)
			}
		})
	}
}

func TestTwoMillionDelayedJobsFitInAGigabyte(t *testing.T) {
	if os.Getenv("KELPIE_TEST_LONG") == "" {
		t.Log("extrapolated from 100,000 by TestAJobTakesAtMost500BytesOfRedis; KELPIE_TEST_LONG=1 stores them all")
		return
	}
	m := newMemory(t, redistest.WithArgs("maxmemory", "1gb"))
	for i := range 20 { // due times are spread over a day
		m.fill(100_000, JobOptions{Queue: "mails", Delay: time.Duration(i+1) * time.Hour})
	}
	q, err := m.c.Queue(context.Background(), "mails")
	if err != nil || q.Delayed != 2_000_000 {
		t.Errorf("%+v, %v: want two million delayed", q, err)
	}
	t.Logf("%d MiB used", m.used()>>20)
}

type memory struct {
	t *testing.T
	c *Client
	s *redistest.Server
}

func newMemory(t *testing.T, o ...redistest.Option) *memory {
	s := redistest.Dedicated(t, o...)
	c, err := New(s.Client(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &memory{t, c, s}
}

func (m *memory) used() int64 {
	m.t.Helper()
	info := m.s.Client(m.t).InfoMap(context.Background(), "memory")
	if info.Err() != nil {
		m.t.Fatal(info.Err())
	}
	return parseInt(info.Item("Memory", "used_memory"))
}

// fill enqueues n jobs in bulk.
func (m *memory) fill(n int, o JobOptions) {
	m.t.Helper()
	payload := bytes.Repeat([]byte("p"), 200)
	for n > 0 {
		batch := make([]Request, min(n, 10_000))
		for i := range batch {
			batch[i] = Request{Kind: "email.send", Payload: payload, JobOptions: o}
		}
		for _, r := range m.c.EnqueueMany(context.Background(), batch) {
			if r.Err != nil {
				m.t.Fatal(r.Err)
			}
		}
		n -= len(batch)
	}
}
