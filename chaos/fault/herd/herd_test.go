package herd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/chaos/work"
	"github.com/kelpiehq/kelpie/queue"
)

// patience is for what takes seconds on an idle machine.
const patience = 60 * time.Second

// flock is a herd and what a test needs beside it.
type flock struct {
	*Herd
	t      *testing.T
	kennel *process.Kennel
	space  *queue.Client
	dir    string

	mu   sync.Mutex
	lost []string
}

// newFlock opens a herd of so many nodes, which do not run yet.
func newFlock(t *testing.T, nodes int, change ...func(*Spec)) *flock {
	t.Helper()
	f := &flock{t: t, dir: t.TempDir()}
	prefix, server := redistest.Prefix(t), redistest.Shared(t)
	rdb := redis.NewClient(server.Client(t).Options())
	var err error
	if f.space, err = queue.New(rdb, queue.Options{Prefix: prefix}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = f.space.Close(), rdb.Close() })
	if f.kennel, err = process.Open(process.Options{Dir: filepath.Join(f.dir, "processes")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.kennel.Close(); err != nil {
			t.Error(err)
		}
	})
	s := Spec{
		Kennel: f.kennel, Kelpie: kelpie, Dir: f.dir, Prefix: prefix, RedisURL: func(int) string { return server.URL() },
		Settings: history.Settings{Nodes: nodes, Workers: 5, Queues: []string{"a", "b"}, Drain: 2 * time.Second},
		Lost: func(name string, err error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.lost = append(f.lost, err.Error())
		},
	}
	for _, c := range change {
		c(&s)
	}
	if f.Herd, err = New(s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(f.kennel.Testimony())
		}
	})
	if err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// gather starts the herd and waits until it is healthy.
func (f *flock) gather() {
	f.t.Helper()
	if err := f.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.healthy()
}

func (f *flock) healthy() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if err := f.Gather(ctx, f.space); err != nil {
		f.t.Fatal(err)
	}
}

func (f *flock) losses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lost)
}

// eventually waits until what the nodes say of themselves is as wanted.
func (f *flock) eventually(what string, ok func(of map[string]queue.NodeInfo) bool) {
	f.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		of := map[string]queue.NodeInfo{}
		nodes, err := f.space.Nodes(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		for _, n := range nodes {
			of[n.Name] = n
		}
		if ok(of) {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			f.t.Fatalf("not within %v: %s: %+v", patience, what, nodes)
		}
	}
}

func TestANodeKeepsItsNameOverItsProcesses(t *testing.T) {
	t.Parallel()
	f := newFlock(t, 2, func(s *Spec) { s.Names = []string{"bess", "fly"}; s.StateDirs = true })
	bess := f.Node("bess")
	if bess.Running() || bess.PID() != 0 || f.Node("moss") != nil {
		t.Error("a node runs before its start, or there is one too many")
	}
	<-bess.Ended() // closed before the first start
	bess.Kill()    // and nothing happens
	f.gather()
	if err := bess.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "bess runs already") {
		t.Errorf("a second Start: %v", err)
	}
	pid := bess.PID()
	bess.Stop()
	bess.Kill()
	if bess.Running() {
		t.Error("a killed node runs")
	}
	f.healthy() // who does not run is not missed
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if bess.PID() == pid {
		t.Error("the new process is the old one")
	}
	f.healthy()
	bess.Stop()
	f.eventually("bess is silent", func(map[string]queue.NodeInfo) bool {
		nodes, err := f.space.Nodes(t.Context())
		wrong := f.Healthy(nodes)
		return err == nil && wrong != nil && strings.Contains(wrong.Error(), "bess has not beaten for")
	})
	bess.Cont()
	f.healthy()
	bess.Stop() // End lets it go on, else it could not end
	if err := f.End(t.Context()); err != nil {
		t.Error(err)
	}
	if nodes, err := f.space.Nodes(t.Context()); err != nil || len(nodes) > 0 {
		t.Errorf("after the end there are %+v, %v", nodes, err)
	}
	if lost := f.losses(); len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
}

func TestANodeThatEndsByItselfIsTold(t *testing.T) {
	t.Parallel()
	f := newFlock(t, 1, func(s *Spec) { s.Settings.Queues = []string{"not a name"} })
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-f.Nodes()[0].Ended()
	if err := f.Close(); err != nil { // waits until it was told
		t.Error(err)
	}
	if lost := f.losses(); len(lost) != 1 || !strings.Contains(lost[0], `n1 ended by itself: exit status 2: kelpie: --queues "not a name"`) {
		t.Errorf("told %q", lost)
	}
}

func TestANodeThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	f := newFlock(t, 1)
	f.gather()
	n := f.Nodes()[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.End(ctx); n.Running() || err != nil && !strings.Contains(err.Error(), "n1 did not end when asked to, and was killed") {
		t.Errorf("End = %v, running: %v", err, n.Running())
	}
	if err := n.Start(ctx); err == nil {
		t.Error("a node was started after the end of its context")
	}
}

func TestNodesDoTheWorkOfTheRunAndKeepItsLedger(t *testing.T) {
	t.Parallel()
	f := newFlock(t, 1)
	f.gather()
	payload, err := work.Task{Op: "test/1"}.Seal()
	if err != nil {
		t.Fatal(err)
	}
	id, err := f.space.Enqueue(t.Context(), queue.Request{Kind: work.Kind.Name(), Payload: payload, JobOptions: queue.JobOptions{Queue: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	f.eventually("the job is completed", func(map[string]queue.NodeInfo) bool {
		q, err := f.space.Queue(t.Context(), "b")
		return err == nil && q.Totals.Completed == 1
	})
	if err := f.End(t.Context()); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(f.dir, history.LedgerDir, "n1-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("ledgers %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || strings.Count(string(text), id) != 2 || !strings.Contains(string(text), `"op":"test/1"`) {
		t.Errorf("the ledger says %s, %v", text, err)
	}
}

func TestGossipObeysTheLinks(t *testing.T) {
	t.Parallel()
	f := newFlock(t, 3)
	f.gather()
	sees := func(of map[string]queue.NodeInfo, name string, want ...string) bool {
		got := slices.Sorted(slices.Values(of[name].Members))
		return slices.Equal(got, want)
	}
	if err := f.Links().Around("n1", Link{Drop: 1}); err != nil {
		t.Fatal(err)
	}
	f.eventually("n1 is alone in gossip, and beats", func(of map[string]queue.NodeInfo) bool {
		return sees(of, "n1", "n1") && sees(of, "n2", "n2", "n3") && sees(of, "n3", "n2", "n3")
	})
	if err := f.Links().Clear(); err != nil {
		t.Fatal(err)
	}
	f.healthy()
	if err := f.Links().All(Link{Drop: 0.1, Duplicate: 0.5, Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	f.Node("n2").Kill()
	f.eventually("the others notice on a bad network", func(of map[string]queue.NodeInfo) bool {
		return sees(of, "n1", "n1", "n3") && sees(of, "n3", "n1", "n3")
	})
	if err := f.Node("n2").Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.healthy()
}
