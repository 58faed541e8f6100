package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// TestAFullRedisTakesNothingNewAndGoesOn: what adds is refused with nothing
// written, what moves, counts or frees goes on.
func TestAFullRedisTakesNothingNewAndGoesOn(t *testing.T) {
	t.Parallel() // on redis-server only: see lacks["maxmemory"]
	server := redistest.Dedicated(t)
	s := newSpace(t, server.Client(t), "redis-server", nil)
	epoch, lock, got := s.furnish()
	s.calls(epoch, lock, got)["enqueue"]() // the script is known before the memory ends
	server.Config("maxmemory", "1mb")
	calls := s.calls(epoch, lock, got)
	for _, name := range []string{"enqueue", "revive", "reschedule"} {
		before := s.snapshot()
		for range 2 {
			if err := s.again(name, calls[name]); !errors.Is(err, ErrFull) || IsUnknown(err) {
				t.Errorf("%s: %v, want ErrFull", name, err)
			}
		}
		s.unchanged(before)
	}
	for _, name := range []string{"exchange", "beat", "promote", "reclaim", "repair", "trim", "raise", "condemn"} {
		before := fmt.Sprint(s.snapshot())
		if err := calls[name](); err != nil {
			t.Errorf("%s: %v, want it to go on", name, err)
		}
		if after := fmt.Sprint(s.snapshot()); name != "promote" && before == after {
			t.Errorf("%s wrote nothing", name)
		}
	}
	server.Config("maxmemory", "0")
	s.adds("after")
	s.wantState("after", Waiting)
}

// again sends a new id each time.
func (s *space) again(name string, call func() error) error {
	if name != "enqueue" {
		return call()
	}
	_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q}})
	return err
}

func TestWaitReplicas(t *testing.T) {
	t.Parallel() // on redis-server only: see lacks["replicas"]
	master := redistest.Dedicated(t, redistest.WithArgs("repl-diskless-sync-delay", "0"))
	s := newSpace(t, master.Client(t), "redis-server", nil)
	s.adds("warm") // without replicas nobody waits
	id, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, WaitReplicas: 1}})
	if !errors.Is(err, ErrUnconfirmed) || IsUnknown(err) || id == "" {
		t.Errorf("nobody replicates: %q, %v", id, err)
	}
	s.wantState(id, Waiting)
	r := s.c.EnqueueMany(s.ctx, []Request{
		{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "warm", WaitReplicas: 1}},
		{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "plain"}},
		{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "wants", WaitReplicas: 1}}})
	if !errors.Is(r[0].Err, ErrExists) || r[1].Err != nil || !errors.Is(r[2].Err, ErrUnconfirmed) {
		t.Errorf("of three, each its own: %v", r)
	}
	replica := redistest.Dedicated(t)
	rdb := replica.Client(t)
	s.ok(rdb.ReplicaOf(s.ctx, "127.0.0.1", master.Addr()[len("127.0.0.1:"):]).Err())
	awaitLink(t, s, rdb)
	s.ok(s.rdb.ScriptFlush(s.ctx).Err()) // in the pipeline the text must be sent as well
	if id, err = s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, WaitReplicas: 1}}); err != nil {
		t.Fatalf("with a replica: %v", err)
	}
	if n := rdb.HExists(s.ctx, s.key("jobs"), id).Val(); !n {
		t.Error("confirmed, and the replica does not have it")
	}
	r = s.c.EnqueueMany(s.ctx, []Request{
		{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "one", WaitReplicas: 1}},
		{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "two", WaitReplicas: 2}}})
	if r[0].Err != nil || !errors.Is(r[1].Err, ErrUnconfirmed) || !strings.Contains(r[1].Err.Error(), "1 of 2") {
		t.Errorf("one replica is there, wanted are 1 and 2: %v", r)
	}
	c, p := s.through(Options{}, nil, on("evalsha", loseReply, 1))
	if _, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, WaitReplicas: 1}}); err != nil {
		t.Errorf("a repeat with a replica: %v", err)
	}
	within(t, "the first command", p.executed)
	p.mu.Lock()
	if p.seen["evalsha"] != 2 || p.seen["hincrby"] != 1 {
		t.Errorf("sent %v: WAIT counts from the last write of its own connection, so the repeat must write", p.seen)
	}
	p.mu.Unlock()
	beyond, err := New(rdb, Options{Prefix: s.c.Prefix()})
	s.ok(err)
	if _, err := beyond.Enqueue(s.ctx, Request{Kind: "k"}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a replica takes no job: %v", err)
	}
	if server, err := beyond.Server(s.ctx); !errors.Is(err, ErrReadOnly) || server.Role != "slave" {
		t.Errorf("the replica is %+v, %v", server, err)
	}
}

// awaitLink returns when the replica has caught up.
func awaitLink(t *testing.T, s *space, replica *redis.Client) {
	t.Helper()
	s.ok(s.rdb.Set(s.ctx, "link", "up", 0).Err())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); replica.Get(s.ctx, "link").Val() != "up"; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("the replica does not come up")
		}
	}
}

// TestC119 forgets every script in the middle of the work, as a restart or an
// operator's SCRIPT FLUSH does.
func TestC119ScriptsAreForgottenInTheMiddle(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch, lock, got := s.furnish()
		calls := s.calls(epoch, lock, got)
		for _, name := range callOrder {
			s.ok(s.rdb.ScriptFlush(s.ctx).Err())
			if err := calls[name](); err != nil {
				t.Errorf("%s after SCRIPT FLUSH: %v", name, err)
			}
		}
		for _, read := range []func() error{
			func() error { _, err := s.c.Queues(s.ctx); return err },
			func() error {
				for _, err := range s.c.Jobs(s.ctx, q, Waiting) {
					return err
				}
				return nil
			},
		} {
			s.ok(s.rdb.ScriptFlush(s.ctx).Err())
			if err := read(); err != nil {
				t.Errorf("a read after SCRIPT FLUSH: %v", err)
			}
		}
	})
}

func TestRefusedLoginsAndRights(t *testing.T) {
	t.Parallel() // on redis-server only: see lacks["config"]
	server := redistest.Dedicated(t, redistest.WithArgs("requirepass", "secret"))
	for name, url := range map[string]string{"no password": "redis://" + server.Addr(), "a wrong password": "redis://:wrong@" + server.Addr()} {
		o, err := ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		rdb := redis.NewClient(o)
		defer rdb.Close()
		c, _ := New(rdb, Options{Prefix: redistest.Prefix(t), Patience: time.Minute})
		if _, err = c.Enqueue(t.Context(), Request{Kind: "k"}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newSpace(t, server.Client(t), "redis-server", nil)
	s.adds("j")
	s.ok(s.rdb.Do(s.ctx, "acl", "setuser", "reader", "on", ">pw", "~*", "+@read", "+@transaction", "+time").Err())
	o, _ := ParseURL("redis://reader:pw@" + server.Addr())
	rdb := redis.NewClient(o)
	defer rdb.Close()
	c, _ := New(rdb, Options{Prefix: s.c.Prefix(), Patience: time.Minute})
	if _, err := c.Enqueue(t.Context(), Request{Kind: "k"}); !errors.Is(err, ErrRefused) {
		t.Errorf("a reader: %v", err)
	}
	if r, err := c.Job(t.Context(), q, "j"); err != nil || r.ID != "j" {
		t.Errorf("a reader reads %+v, %v", r, err)
	}
}

func TestARestartedRedisIsFoundAgain(t *testing.T) {
	t.Parallel() // on redis-server only: see lacks["restart"]
	server := redistest.Dedicated(t, redistest.WithAOF("always"))
	s := newSpace(t, server.Client(t), "redis-server", nil)
	s.adds("before")
	server.Kill()
	_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "down"}})
	if !errors.Is(err, ErrUnreachable) && !IsUnknown(err) {
		t.Errorf("while it is down: %v", err)
	}
	server.Restart()
	s.setTime(time.Time{})
	fresh, err := New(s.rdb, Options{Prefix: s.c.Prefix()})
	s.ok(err)
	if _, err := fresh.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "after"}}); err != nil {
		t.Fatal(err)
	}
	s.wantState("before", Waiting)
	s.wantState("after", Waiting)
}
