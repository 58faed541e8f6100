package node

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

// herd is a job space of its own and the nodes of a test in it.
type herd struct {
	t      *testing.T
	url    string
	prefix string
	client *queue.Client
	rdb    *redis.Client
	ledger *ledger
}

func newHerd(t *testing.T, url, prefix string) *herd {
	t.Helper()
	o, err := queue.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	c, err := queue.New(rdb, queue.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = rdb.Close() })
	return &herd{t: t, url: url, prefix: prefix, client: c, rdb: rdb, ledger: newLedger(t)}
}

func realHerd(t *testing.T) *herd {
	return newHerd(t, redistest.Shared(t).URL(), redistest.Prefix(t))
}

// ownHerd has a Redis of its own, to be hurt.
func ownHerd(t *testing.T, o ...redistest.Option) (*herd, *redistest.Server) {
	server := redistest.Dedicated(t, o...)
	return newHerd(t, server.URL(), redistest.Prefix(t)), server
}

// logger writes to the test's output where KELPIE_TEST_LOG is set.
func logger(t *testing.T) zerolog.Logger {
	if os.Getenv("KELPIE_TEST_LOG") == "" {
		return zerolog.Nop()
	}
	return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, NoColor: true, TimeFormat: "05.000"}).With().Timestamp().Str("test", t.Name()).Logger()
}

func (h *herd) config(name string) Config {
	return Config{
		Redis: h.url, Prefix: h.prefix, Name: name, Gossip: "127.0.0.1:0", Workers: 10,
		DrainTimeout: 2 * time.Second, Log: logger(h.t),
	}
}

// started is a node that runs.
type started struct {
	*Node
	stop func() error // drains and returns what Run returned
}

// counted is the sum of a counter over its labels.
func (s *started) counted(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := s.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

func (h *herd) start(c Config, handle func(*Node)) *started {
	h.t.Helper()
	n, err := New(c)
	if err != nil {
		h.t.Fatal(err)
	}
	handle(n)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	var once sync.Once
	var result error
	s := &started{Node: n, stop: func() error {
		once.Do(func() {
			cancel()
			select {
			case result = <-ended:
			case <-time.After(30 * time.Second):
				result = fmt.Errorf("node %s does not stop", c.Name)
				h.t.Error(result)
			}
		})
		return result
	}}
	h.t.Cleanup(func() { _ = s.stop() })
	return s
}

// works makes a node serve the kind "work".
func (h *herd) works(name string) func(*Node) {
	return func(n *Node) { Handle(n, workKind, worker(h.ledger.path, name)) }
}

// startWorking starts a node in this process that serves the kind "work".
func (h *herd) startWorking(c Config) *started { return h.start(c, h.works(c.Name)) }

// do enqueues a job of the kind "work".
func (h *herd) do(w work, o ...queue.JobOptions) string {
	h.t.Helper()
	id, err := workKind.Enqueue(context.Background(), h.client, w, o...)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// doMany enqueues n such jobs.
func (h *herd) doMany(n int, w work, o ...queue.JobOptions) (ids []string) {
	h.t.Helper()
	for _, r := range workKind.EnqueueMany(context.Background(), h.client, slices.Repeat([]work{w}, n), o...) {
		if r.Err != nil {
			h.t.Fatal(r.Err)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// job reads a job of the queue "default".
func (h *herd) job(id string) queue.Record {
	h.t.Helper()
	r, err := h.client.Job(context.Background(), queue.DefaultQueue, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// completed counts the jobs of the queue "default" that ended well.
func (h *herd) completed() int64 { return h.queue(queue.DefaultQueue).Totals.Completed }

// nodes are the sessions in Redis; none while Redis does not answer.
func (h *herd) nodes() []queue.NodeInfo {
	nodes, _ := h.client.Nodes(context.Background())
	return nodes
}

// awaitHerd waits until n nodes are registered, one of them sweeps, and each
// sees all of them by gossip.
func (h *herd) awaitHerd(n int) {
	h.t.Helper()
	eventually(h.t, patience, fmt.Sprintf("%d nodes that see each other", n), func() bool {
		nodes := h.nodes()
		for _, other := range nodes {
			if len(other.Members) != n {
				return false
			}
		}
		return len(nodes) == n && h.sweeper() != ""
	})
}

// sweeper is the name of the node that holds the lock, or "".
func (h *herd) sweeper() string {
	for _, n := range h.nodes() {
		if n.Sweeper && n.Epoch > 0 {
			return n.Name
		}
	}
	return ""
}

// patience is for what takes a moment on an idle machine.
const patience = 30 * time.Second

// pass lets time pass: for what must not happen meanwhile.
func pass(d time.Duration) { sleep(context.Background(), d) }

// eventually waits until ok holds; it fails the test after most.
func eventually(t *testing.T, most time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("after %v: not yet: %s", most, what)
		}
	}
}

func (h *herd) enqueue(kind, payload string, o ...queue.JobOptions) string {
	h.t.Helper()
	var opts queue.JobOptions
	if len(o) > 0 {
		opts = o[0]
	}
	id, err := h.client.Enqueue(context.Background(), queue.Request{Kind: kind, Payload: []byte(payload), JobOptions: opts})
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *herd) queue(name string) queue.QueueInfo {
	h.t.Helper()
	q, err := h.client.Queue(context.Background(), name)
	if err != nil {
		h.t.Fatal(err)
	}
	return q
}

var raw = queue.Define[[]byte]("raw")

func TestJobsRun(t *testing.T) {
	t.Parallel()
	redistest.Both(t, func(t *testing.T, rdb *redis.Client, kind string) {
		h := newHerd(t, "redis://"+rdb.Options().Addr, redistest.Prefix(t))
		got := make(chan string, 100)
		h.start(h.config("n1"), func(n *Node) {
			Handle(n, raw, func(_ context.Context, j *queue.Job[[]byte]) error {
				got <- j.ID
				return nil
			})
		})
		want := map[string]bool{}
		for i := range 100 {
			want[h.enqueue("raw", fmt.Sprint(i))] = true
		}
		for range 100 {
			select {
			case id := <-got:
				if !want[id] {
					t.Fatalf("%s ran twice, or was never enqueued", id)
				}
				delete(want, id)
			case <-time.After(10 * time.Second):
				t.Fatalf("%d jobs did not run", len(want))
			}
		}
		eventually(t, 5*time.Second, "all completed", func() bool { return h.queue("default").Totals.Completed == 100 })
	})
}

// hook calls f with each log message.
type hook func(msg string)

// Run implements zerolog.Hook.
func (f hook) Run(_ *zerolog.Event, _ zerolog.Level, msg string) { f(msg) }

func zAt(member string, at time.Time) redis.Z {
	return redis.Z{Score: float64(at.UnixMilli()), Member: member}
}

// logBook keeps what is logged. It may be read at any time: memberlist says a
// word now and then after its end.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *logBook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
