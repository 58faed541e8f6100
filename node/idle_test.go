package node

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

// An idle node makes at most 5 calls a second, the sweeper's at most 10, and each
// further node adds no more than a node. Calls are reads of sockets, as INFO
// counts them; the commands inside scripts are reported.
func TestIdleNodesAreNearSilent(t *testing.T) {
	t.Parallel()
	t.Run("with one queue", func(t *testing.T) { t.Parallel(); idle(t, 1) })
	t.Run("with five queues", func(t *testing.T) { t.Parallel(); idle(t, 5) })
}

func idle(t *testing.T, queues int) {
	h, _ := ownHerd(t)
	const watch = 11 * time.Second // every 10 s a node looks after its queues
	c := h.config("n1")
	for i := range queues {
		c.Queues = append(c.Queues, Queue{fmt.Sprint("q", i), 1})
	}
	h.startWorking(c)
	eventually(t, patience, "n1 sweeps", func() bool { return h.sweeper() == "n1" })
	pass(2 * time.Second) // the start is over
	alone := h.calls(watch)
	for _, name := range []string{"n2", "n3"} {
		c.Name = name
		h.startWorking(c)
	}
	h.awaitHerd(3)
	pass(2 * time.Second)
	three := h.calls(watch)
	each := (three - alone) / 2
	t.Logf("calls a second: %.1f by the sweeper's node, %.1f by each further one", alone, each)
	if alone > 10 {
		t.Errorf("the sweeper's node makes %.1f calls a second, want at most 10", alone)
	}
	if each > 5 {
		t.Errorf("each further node makes %.1f calls a second, want at most 5", each)
	}
}

var (
	readsInInfo    = regexp.MustCompile(`total_reads_processed:(\d+)`)
	commandsInInfo = regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`)
)

// calls returns the reads a second that Redis makes in a while, the two INFO of
// this call left out, and logs the commands.
func (h *herd) calls(while time.Duration) float64 {
	h.t.Helper()
	read := func() (n float64, commands map[string]int) {
		info := h.rdb.InfoMap(context.Background(), "stats", "commandstats")
		if info.Err() != nil {
			h.t.Fatal(info.Err())
		}
		text := fmt.Sprint(info.Val())
		n, _ = strconv.ParseFloat(readsInInfo.FindStringSubmatch(strings.ReplaceAll(text, "total_reads_processed ", "total_reads_processed:"))[1], 64)
		commands = map[string]int{}
		for _, m := range commandsInInfo.FindAllStringSubmatch(text, -1) {
			commands[m[1]], _ = strconv.Atoi(m[2])
		}
		return n, commands
	}
	before, commandsBefore := read()
	began := time.Now()
	pass(while)
	after, commands := read()
	seconds, total := time.Since(began).Seconds(), 0
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		if n := commands[name] - commandsBefore[name]; n > 0 && name != "info" {
			total += n
			lines = append(lines, fmt.Sprintf("%s %.1f", name, float64(n)/seconds))
		}
	}
	h.t.Logf("%.1f reads a second; commands, inner ones included, %.1f a second: %s", (after-before-1)/seconds, float64(total)/seconds, strings.Join(lines, ", "))
	return (after - before - 1) / seconds
}

// pickups measures how long a job takes from the call of Enqueue to the start of
// its handler on an idle node, n times.
func pickups(tb testing.TB, url, prefix string, enqueue *queue.Client, n int) (p50, p99 time.Duration) {
	tb.Helper()
	started := make(chan time.Time, 1)
	node, err := New(Config{Redis: url, Prefix: prefix, Name: "idle", Gossip: "off"})
	if err != nil {
		tb.Fatal(err)
	}
	Handle(node, raw, func(context.Context, *queue.Job[[]byte]) error { started <- time.Now(); return nil })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	}()
	var took []time.Duration
	for i := range n + 10 {
		asked := time.Now()
		if _, err := enqueue.Enqueue(ctx, queue.Request{Kind: "raw"}); err != nil {
			tb.Fatal(err)
		}
		select {
		case at := <-started:
			if i >= 10 { // the start is over
				took = append(took, at.Sub(asked))
			}
		case <-time.After(patience):
			tb.Fatal("a job was not picked up")
		}
		pass(3 * time.Millisecond) // idle again
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}

// The bar is 5 ms on a machine that does nothing else (BenchmarkPickup); here
// others may run.
func TestIdleNodeTakesANewJobSoon(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	p50, p99 := pickups(t, h.url, h.prefix, h.client, 500)
	t.Logf("picked up after p50 %v, p99 %v", p50, p99)
	if p50 > 100*time.Millisecond || p99 > time.Second {
		t.Errorf("picked up after p50 %v, p99 %v", p50, p99)
	}
}

// BenchmarkPickup prints how soon an idle node takes a new job: p99 of 500 is to
// be below 5 ms.
func BenchmarkPickup(b *testing.B) {
	server := redistest.Dedicated(b)
	c, err := queue.New(server.Client(b), queue.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for range b.N {
		p50, p99 := pickups(b, server.URL(), "kelpie", c, 500)
		b.ReportMetric(float64(p50.Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
	}
}
