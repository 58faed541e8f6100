package node

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

// Faults of the store in turn: after each, delayed jobs run again by themselves.
func TestC050PromotionGoesOnAfterEachFault(t *testing.T) {
	t.Parallel()
	h, server := ownHerd(t, redistest.WithAOF("always"))
	n := h.startWorking(h.config("n1"))
	eventually(t, patience, "n1 sweeps", func() bool { return h.sweeper() == "n1" })
	ctx := context.Background()
	delayedKey := h.prefix + ":{default}:delayed"
	faults := []struct {
		name       string
		hurt, heal func()
	}{
		{"no fault", func() {}, func() {}},
		{"Redis forgets its scripts", func() { h.rdb.ScriptFlush(ctx) }, func() {}},
		{"Redis is busy with a long script", func() {
			short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			h.rdb.Eval(short, "while true do end", nil)
			pass(2 * time.Second)
		}, func() { h.rdb.ScriptKill(ctx) }},
		{"Redis answers nothing", func() { server.Pause(); pass(3 * time.Second) }, server.Resume},
		{"Redis restarts", server.Kill, server.Restart},
		{"Redis refuses writes", func() {
			server.Config("min-replicas-to-write", "3")
			pass(2 * time.Second)
		}, func() { server.Config("min-replicas-to-write", "0") }},
		{"the delayed jobs' key has a wrong type", func() {
			h.rdb.Rename(ctx, delayedKey, h.prefix+"-aside")
			h.rdb.Set(ctx, delayedKey, "x", 0)
			pass(2 * time.Second)
		}, func() { h.rdb.Rename(ctx, h.prefix+"-aside", delayedKey) }},
	}
	server.Config("lua-time-limit", "100")
	keep := h.do(work{}, queue.JobOptions{Delay: time.Hour}) // so that there is a key to spoil
	for i, f := range faults {
		f.hurt()
		f.heal()
		healed := time.Now()
		var id string
		eventually(t, patience, "a job can be enqueued after: "+f.name, func() (ok bool) {
			var err error
			id, err = workKind.Enqueue(ctx, h.client, work{}, queue.JobOptions{Delay: 50 * time.Millisecond})
			return err == nil
		})
		eventually(t, patience, "a delayed job runs after: "+f.name, func() bool { return len(h.ledger.starts(id)) == 1 })
		t.Logf("after %q promotion went on within %v", f.name, time.Since(healed).Round(time.Millisecond))
		if i == 0 {
			continue
		}
		if took := time.Since(healed); took > 10*time.Second {
			t.Errorf("after %q promotion went on after %v", f.name, took)
		}
	}
	if r := h.job(keep); r.State != queue.Delayed {
		t.Errorf("%+v, want it delayed as before", r)
	}
	if n.current.Load().sweeper.Stats().Promoted == 0 {
		t.Error("the sweeper promoted nothing: the exchanges did it all")
	}
}

// Redis's clock steps by hours, to and fro, as far as the nodes can see it: their
// beats do. Only whether a beat has changed counts.
func TestC052StepsOfRedisClockCondemnNobody(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	for _, name := range []string{"n1", "n2", "n3"} {
		c := h.config(name)
		c.Lease = 4 * time.Second
		h.startWorking(c)
	}
	h.awaitHerd(3)
	ids := h.doMany(10, work{Sleep: 8 * time.Second})
	later := h.doMany(100, work{}, queue.JobOptions{Delay: time.Hour})
	ctx, key := context.Background(), h.prefix+":{cluster}:sessions"
	eventually(t, patience, "the jobs are done", func() bool {
		for _, n := range h.nodes() {
			step := time.Duration(rand.IntN(20)-10) * time.Hour
			h.rdb.ZAddXX(ctx, key, zAt(n.Session, h.redisTime().Add(step)))
		}
		pass(200 * time.Millisecond)
		return h.completed() == 10
	})
	for _, id := range ids {
		if starts := h.ledger.starts(id); len(starts) != 1 {
			t.Errorf("job %s: %v, want one start", id, starts)
		}
	}
	q := h.queue("default")
	if q.Totals.Stalled != 0 || q.Delayed != int64(len(later)) || len(h.nodes()) != 3 {
		t.Errorf("%+v and nodes %v, want nobody condemned and nothing run early", q, h.nodes())
	}
}
