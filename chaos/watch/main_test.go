package watch

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// connect returns connections to one Redis.
func connect(t *testing.T, address, prefix string) (*redis.Client, *queue.Client) {
	t.Helper()
	rdb, err := queue.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	space, err := queue.New(rdb, queue.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = space.Close(), rdb.Close() })
	return rdb, space
}

// kept returns the whole lines of a file so far.
func kept[T any](t *testing.T, dir, file string) (out []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var v T
		if !strings.HasSuffix(line, "\n") {
			break
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
		out = append(out, v)
	}
	return out
}

// collecting is a collector that runs.
type collecting struct {
	t    *testing.T
	dir  string
	stop func() error
}

func collector(t *testing.T, address, prefix string, queues ...string) *collecting {
	t.Helper()
	rdb, space := connect(t, address, prefix)
	clock, err := queue.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	c := &collecting{t: t, dir: t.TempDir()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- (&Collector{Dir: c.dir, Queues: queues, Space: space, Redis: rdb, Clock: clock}).Run(ctx)
		clock.Close()
	}()
	stopped := false
	c.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { _ = c.stop() })
	return c
}

// await waits until the lines of the folder show something.
func (c *collecting) await(what string, shown func() bool) {
	c.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !shown() {
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func (c *collecting) steps() []history.Step {
	c.t.Helper()
	return kept[history.Step](c.t, c.dir, history.LogFile)
}
