package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

var update = flag.Bool("update", false, "write the golden files anew")

var someRecord = queue.Record{
	ID: "order-17", Kind: "email.send", Queue: "mail", State: queue.Dead, Attempts: 2, Failures: 1, Stalls: 1, MaxAttempts: 2, Priority: 5,
	EnqueuedAt: time.UnixMilli(1800000000123), DueAt: time.UnixMilli(1800000000123), FinishedAt: time.UnixMilli(1800000009000),
	Timeout: 30 * time.Minute, Payload: []byte("{ \"to\" : \"<é>\",\n \"n\":1e2}"), PayloadSize: 25, ErrorCount: 2,
	Errors: []queue.Failure{
		{Attempt: 2, At: time.UnixMilli(1800000009000), Node: "n2", Reason: "failed", Error: "550 \x1b[31m<no such user>\nbye"},
		{Attempt: 1, At: time.UnixMilli(1800000003000), Node: "n1", Reason: "stalled", Error: ""},
	},
}

var someQueue = queue.QueueInfo{
	Name: "mail", Waiting: 3, Delayed: 2, Active: 1, Dead: 4, Paused: true, OldestWaiting: 90*time.Second + 250*time.Millisecond,
	Totals: queue.Totals{Enqueued: 11, Completed: 12, Failed: 13, Retried: 14, Stalled: 15, Dead: 16, Cancelled: 17, Stale: 18, Promoted: 19},
}

var someNode = queue.NodeInfo{
	Name: "n1", Session: "n1-abc", Version: "v1.0.0", Gossip: "10.0.0.1:7946", Queues: map[string]int{"web": 1, "mail": 3},
	Workers: 10, Active: 4, Draining: true, Sweeper: true, Epoch: 1796030661607036, HeartbeatAge: 120 * time.Millisecond, Members: []string{"n1", "n2"},
}

// TestViews compares every view with a golden file; the fields of the JSON are a
// promise, the tables are for people.
func TestViews(t *testing.T) {
	list := func(asJSON bool, header []string, add func(*listing) error) []byte {
		var b bytes.Buffer
		cmd := newQueues()
		cmd.SetOut(&b)
		l := newOutput(cmd, asJSON).listing(header...)
		if err := add(l); err != nil {
			t.Fatal(err)
		}
		if err := l.end(&b, "empty"); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	queues := func(l *listing) error { return l.add(viewQueue(someQueue), queueRow(someQueue)...) }
	nodes := func(l *listing) error {
		if err := l.add(viewNode(someNode), nodeRow(someNode)...); err != nil {
			return err
		}
		bare := queue.NodeInfo{Name: "n2", Session: "n2-def"} // it has not described itself yet
		return l.add(viewNode(bare), nodeRow(bare)...)
	}
	jobs := func(l *listing) error {
		return l.add(jobItem{headOf(someRecord), someRecord.PayloadSize, failuresOf(someRecord)}, jobRow(someRecord)...)
	}
	job, err := jobJSON(someRecord)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	jobText(&text, someRecord)
	for name, got := range map[string][]byte{
		"queues.txt": list(false, queueColumns, queues), "queues.json": list(true, queueColumns, queues),
		"nodes.txt": list(false, nodeColumns, nodes), "nodes.json": list(true, nodeColumns, nodes),
		"jobs.txt": list(false, jobColumns, jobs), "jobs.json": list(true, jobColumns, jobs),
		"job.txt": text.Bytes(), "job.json": append(job, '\n'),
	} {
		golden(t, name, got)
		if filepath.Ext(name) == ".json" && !json.Valid(got) {
			t.Errorf("%s is no JSON", name)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "views", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (go test -update writes it anew)\ngot:\n%s\nwant:\n%s", name, got, want)
	}
}

func TestAListIsOnePageInMemoryAndOneArray(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	cmd := newQueues()
	cmd.SetOut(&b)
	l := newOutput(cmd, false).listing("A")
	for range pageRows*2 + 1 {
		if err := l.add(nil, "x"); err != nil {
			t.Fatal(err)
		}
		if len(l.rows) >= pageRows {
			t.Fatalf("%d rows in memory", len(l.rows))
		}
	}
	if err := l.end(&b, ""); err != nil {
		t.Fatal(err)
	}
	if n, headers := bytes.Count(b.Bytes(), []byte("x\n")), bytes.Count(b.Bytes(), []byte("A\n")); n != pageRows*2+1 || headers != 1 {
		t.Errorf("%d rows and %d headers", n, headers)
	}
}
