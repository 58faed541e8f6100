package traffic

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// usual has a share of everything.
func usual(jobs int, d time.Duration) history.Settings {
	return history.Settings{Jobs: jobs, Duration: d, Queues: []string{"mail", "orders"}, Work: history.Work{
		Producers: 2, Shortest: time.Millisecond, Longest: 150 * time.Millisecond, Delayed: 150, Later: 5 * time.Second,
		Failing: 60, Panicking: 20, Snoozing: 20, Dropping: 20, Doomed: 20, Deaf: 20, Parents: 20, Overrun: 20, Revived: 20,
		Chosen: 100, CLI: 30, Batched: 200, Impatient: 20, Moved: 20,
	}}
}

// folder makes a run's folder.
func folder(t *testing.T, seed uint64, s history.Settings) string {
	t.Helper()
	dir := t.TempDir()
	if err := history.Save(filepath.Join(dir, history.RunFile), history.Run{Seed: seed, Settings: s, Begin: history.Now()}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// calls returns the whole lines of client.jsonl so far.
func calls(t *testing.T, dir string) (out []history.Op) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, history.ClientFile))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var op history.Op
		if !strings.HasSuffix(line, "\n") {
			break
		}
		if err := json.Unmarshal([]byte(line), &op); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, op)
	}
	return out
}

// await waits until the history shows something.
func await(t *testing.T, what string, shown func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !shown() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func space(t *testing.T, address, prefix string) *queue.Client {
	t.Helper()
	rdb, err := queue.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := queue.New(rdb, queue.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), rdb.Close() })
	return c
}

// stored returns the payloads of all jobs that a space holds, by id.
func stored(t *testing.T, c *queue.Client, queues ...string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, q := range queues {
		for _, s := range queue.States {
			for r, err := range c.Jobs(context.Background(), q, s) {
				if err != nil {
					t.Fatal(err)
				}
				whole, err := c.Job(context.Background(), q, r.ID)
				if err != nil {
					t.Fatal(err)
				}
				if out[r.ID] != nil {
					t.Errorf("job %s is there twice", r.ID)
				}
				out[r.ID] = whole.Payload
			}
		}
	}
	return out
}
