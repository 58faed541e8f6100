package work

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

func client(t *testing.T, address, prefix string) *queue.Client {
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

func calls(t *testing.T, dir string) []history.Op {
	t.Helper()
	return read[history.Op](t, filepath.Join(dir, history.ClientFile))
}

func TestAJobThatRunsTwiceHasItsChildrenOnce(t *testing.T) {
	t.Parallel()
	jobs := client(t, redistest.Shared(t).URL(), redistest.Prefix(t))
	first, dir := open(t, jobs)
	second, err := Open(dir, "n1", jobs)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	parent := job(t, Task{Acts: []Act{Child}, Children: 2}, 1, 1)
	for _, w := range []*Worker{first, second} {
		if err := w.Handle(t.Context(), parent); err != nil {
			t.Fatal(err)
		}
	}
	info, err := jobs.Queue(t.Context(), "mail")
	if err != nil || info.Waiting != 2 {
		t.Errorf("%d children wait, %v; want 2", info.Waiting, err)
	}
	var got []string
	for _, op := range calls(t, dir) {
		got = append(got, fmt.Sprint(op.Phase, " ", op.Client == first.name, " ", op.N, " ", op.ID, " ", op.Error))
	}
	want := []string{
		"invoke true 1 j1-child1 ", "ok true 1 j1-child1 ", "invoke true 2 j1-child2 ", "ok true 2 j1-child2 ",
		"invoke false 1 j1-child1 ", "fail false 1 j1-child1 exists", "invoke false 2 j1-child2 ", "fail false 2 j1-child2 exists",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("calls\n%q, want\n%q", got, want)
	}
}

func TestAChildIsTheCallThatMadeIt(t *testing.T) {
	t.Parallel()
	jobs := client(t, redistest.Shared(t).URL(), redistest.Prefix(t))
	w, dir := open(t, jobs)
	if err := w.Handle(t.Context(), job(t, Task{Acts: []Act{Child}, Children: 1}, 1, 1)); err != nil {
		t.Fatal(err)
	}
	record, err := jobs.Job(t.Context(), "mail", "j1-child1")
	if err != nil {
		t.Fatal(err)
	}
	op := calls(t, dir)[0]
	task, err := Verify(record.Payload)
	if err != nil || task.Op != fmt.Sprintf("%s/%d", op.Client, op.N) || op.Sum != Sum(record.Payload) {
		t.Errorf("the child is of %q, %v; the call is %+v", task.Op, err, op)
	}
	if op.Queue != "mail" || !op.Chosen || op.By != "handler" || op.Priority != record.Priority || op.Max != record.MaxAttempts {
		t.Errorf("call %+v of job %+v", op, record)
	}
}

func TestChildrenAreTriedUntilTheHandlerIsCut(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody will answer here
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	w, dir := open(t, client(t, "redis://"+l.Addr().String(), redistest.Prefix(t)))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(queue.ErrShutdown)
	if err := w.Handle(ctx, job(t, Task{Acts: []Act{Child}, Children: 2}, 1, 1)); !errors.Is(err, queue.ErrShutdown) {
		t.Errorf("error %v, want the cause", err)
	}
	ops := calls(t, dir)
	if len(ops) != 2 || ops[1].Phase != history.Fail || ops[1].Error == Exists {
		t.Errorf("calls %+v", ops)
	}
	if end := ledger(t, dir)[1]; end.Outcome != "cut" || end.Cause != "shutdown" {
		t.Errorf("end %+v", end)
	}
	if err := w.Handle(t.Context(), job(t, Task{Acts: []Act{Child}, Children: 2}, 1, 2)); !errors.Is(err, queue.ErrUnreachable) {
		t.Errorf("error %v, want that Redis is away", err)
	}
	if n := len(calls(t, dir)) - 2; n != 2*childCalls {
		t.Errorf("%d lines, want %d calls", n, childCalls)
	}
	if end := ledger(t, dir)[3]; end.Outcome != "fail" || end.Cause != "" {
		t.Errorf("end %+v", end)
	}
}

func TestACallHasOneOfThreeEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err         error
		phase, says string
	}{
		"stored":                        {nil, history.OK, ""},
		"stored, but not on replicas":   {queue.ErrUnconfirmed, history.OK, queue.ErrUnconfirmed.Error()},
		"refused, since the id is used": {fmt.Errorf("enqueue: %w", queue.ErrExists), history.Fail, Exists},
		"refused, since Redis is full":  {&queue.OpError{Op: "enqueue", Err: queue.ErrReadOnly}, history.Fail, "enqueue: " + queue.ErrReadOnly.Error()},
		"without an answer":             {fmt.Errorf("%w: %w", queue.ErrUnknown, os.ErrDeadlineExceeded), history.Unknown, "result unknown: i/o timeout"},
		"given up by the caller":        {fmt.Errorf("%w: %w", queue.ErrUnknown, context.Canceled), history.Unknown, "result unknown: context canceled"},
	} {
		got := Ended(history.Op{Phase: history.Invoke, Client: "p1", N: 3}, "j1", tt.err)
		if got.Phase != tt.phase || got.Error != tt.says || got.ID != "j1" || got.N != 3 || got.T == 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
