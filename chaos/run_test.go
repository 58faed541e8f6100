package chaos

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/fault/server"
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/chaos/scenario"
	"github.com/kelpiehq/kelpie/queue"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// script makes a program of a few lines, and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kelpie")
	write := exec.Command("/bin/sh", "-c", `cat > "$1" && chmod 755 "$1"`, "sh", path) // a process forked while this one writes it would keep it busy
	write.Stdin = strings.NewReader("#!/bin/sh\n" + text + "\n")
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// needServer is for runs that start a Redis of their own.
func needServer(t *testing.T) {
	t.Helper()
	if os.Getenv("KELPIE_TEST_BACKEND") == "container" {
		t.Skip("this machine has Redis in containers only")
	}
}

const saysWhoItIs = `echo '{"version":"v1","commit":"c0ffee","modified":true,"go":"go1.26"}'`

func options(t *testing.T, name string) Options {
	t.Helper()
	s, ok := scenario.Find(name)
	if !ok {
		t.Fatalf("no scenario %s", name)
	}
	return Options{Scenario: s, Draw: scenario.Options{Seed: 1}, Dir: filepath.Join(t.TempDir(), "run"), Kelpie: script(t, saysWhoItIs)}
}

func TestARunSaysWhatItTests(t *testing.T) {
	t.Parallel()
	r, err := newRun(t.Context(), options(t, "kills"))
	if err != nil {
		t.Fatal(err)
	}
	if p := r.plan; p.Version != "v1" || p.Commit != "c0ffee, modified" || p.Go != "go1.26" || !strings.Contains(p.System, "processors") {
		t.Errorf("plan says %q, %q, %q, %q", p.Version, p.Commit, p.Go, p.System)
	}
}

func TestARunThatCannotBeginMakesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"the binary is none": {func(o *Options) { o.Kelpie = "/nowhere/kelpie" }, "/nowhere/kelpie is no kelpie that runs here"},
		"the binary is another program": {
			func(o *Options) { o.Kelpie = script(t, "echo hello") }, `it answers "hello" to version --json`},
		"the folder holds a run": {func(o *Options) {
			if err := os.MkdirAll(o.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := history.Save(filepath.Join(o.Dir, history.RunFile), history.Run{}); err != nil {
				t.Fatal(err)
			}
		}, "holds an earlier run"},
		"nothing is said": {func(o *Options) { *o = Options{} }, "needs a scenario"},
		"faults on Redis itself, which is somebody's own": {func(o *Options) {
			s, _ := scenario.Find("redis-kill")
			o.Scenario, o.Redis = s, "redis://127.0.0.1:1"
		}, "it needs a server of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, "kills")
			tt.change(&o)
			r, err := Run(t.Context(), o)
			if r != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("result %v, error %v, want %q", r, err, tt.want)
			}
		})
	}
}

func TestARunWhoseRedisIsAwayHasNoVerdict(t *testing.T) {
	t.Parallel()
	o := options(t, "kills")
	o.Redis = "redis://127.0.0.1:1"
	r, err := Run(t.Context(), o)
	if r != nil || !errors.Is(err, queue.ErrUnreachable) {
		t.Errorf("result %v, error %v", r, err)
	}
}

// The binary here is none that runs a node, so the run ends on its own.
func TestARunWhoseNodesDoNotComeHasNoVerdict(t *testing.T) {
	t.Parallel()
	needServer(t)
	o := options(t, "calm")
	o.Kelpie = script(t, `[ "$1" = version ] || exit 1; `+saysWhoItIs)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	r, err := Run(ctx, o)
	if r != nil || err == nil || !strings.Contains(err.Error(), "ended before anything had begun") {
		t.Errorf("result %v, error %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "processes", "n1.log")); err != nil {
		t.Errorf("the log of a node is not kept: %v", err)
	}
}

func TestFlushAllKeepsTheSwitchOfTheLogs(t *testing.T) {
	t.Parallel()
	needServer(t)
	k, err := process.Open(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	own, err := server.Start(t.Context(), k, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	rdb := redis.NewClient(&redis.Options{Addr: own.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	space, err := queue.New(rdb, queue.Options{Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = space.Close() })
	if _, err := space.Enqueue(t.Context(), queue.Request{Kind: "k", JobOptions: queue.JobOptions{Queue: "q"}}); err != nil {
		t.Fatal(err)
	}
	s := &stage{run: &run{plan: history.Run{Settings: history.Settings{Queues: []string{"q"}}}}, prefix: "p", rdb: rdb}
	if err := (&ownRedis{Redis: own, stage: s}).FlushAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := rdb.DBSize(t.Context()).Result(); n != 2 || err != nil {
		t.Errorf("%d keys are left (%v), want the meta of the queue and of the whole space", n, err)
	}
	if _, err := space.Enqueue(t.Context(), queue.Request{Kind: "k", JobOptions: queue.JobOptions{Queue: "q"}}); err != nil {
		t.Fatal(err)
	}
	if log, err := space.ReadLog(t.Context(), "q", 0, 10); len(log) != 1 || err != nil {
		t.Errorf("the log has %v (%v), want the second enqueue", log, err)
	}
}

func TestTheKeysOfARunAreRemovedAndNoOthers(t *testing.T) {
	t.Parallel()
	own := redistest.Dedicated(t)
	rdb := redis.NewClient(&redis.Options{Addr: own.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	for _, key := range []string{"chaos-1:{q}:jobs", "chaos-1:{cluster}:meta", "chaos-12:{q}:jobs", "kelpie:{q}:jobs", "chaos-1"} {
		if err := rdb.Set(t.Context(), key, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeKeys(t.Context(), own.URL(), "chaos-1"); err != nil {
		t.Fatal(err)
	}
	left, err := rdb.Keys(t.Context(), "*").Result()
	if len(left) != 3 || err != nil {
		t.Errorf("left are %q (%v), want the three of others", left, err)
	}
}
