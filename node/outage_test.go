package node

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

// long reports whether the slow variants were asked for.
func long() bool { return os.Getenv("KELPIE_TEST_LONG") != "" }

// Redis is gone for several leases while jobs run on three nodes: nobody can
// tell who lives, so nobody is declared dead, and nothing is cancelled.
func TestOutageOfRedisCostsNothing(t *testing.T) {
	t.Parallel()
	lease, outage := 4*time.Second, 16*time.Second
	if long() {
		lease, outage = 0, time.Minute // the default lease
	}
	t.Run("Redis is killed and comes back", func(t *testing.T) {
		t.Parallel()
		outageTest(t, lease, outage, (*redistest.Server).Kill, (*redistest.Server).Restart)
	})
	t.Run("Redis stops and answers nothing, then goes on", func(t *testing.T) {
		t.Parallel()
		outageTest(t, lease, outage, (*redistest.Server).Pause, (*redistest.Server).Resume)
	})
}

func outageTest(t *testing.T, lease, outage time.Duration, down, up func(*redistest.Server)) {
	h, server := ownHerd(t, redistest.WithAOF("always"))
	names := []string{"n1", "n2", "n3"}
	for _, name := range names {
		h.spawn(order{Name: name, Lease: lease})
	}
	h.awaitHerd(3)
	var through []string
	for _, name := range names {
		through = append(through, h.occupy(name, work{Sleep: outage + 6*time.Second})...)
	}
	within := h.doMany(6, work{Sleep: outage / 2})
	eventually(t, patience, "all run", func() bool { return len(h.ledger.of("start", "", "")) == len(through)+6 })
	down(server)
	pass(outage)
	up(server)
	back := time.Now()
	probe := h.do(work{})
	eventually(t, patience, "a new job runs", func() bool { return len(h.ledger.starts(probe)) == 1 })
	took := h.ledger.starts(probe)[0].at.Sub(back)
	eventually(t, patience, "what ended meanwhile is settled", func() bool { return h.completed() >= int64(len(within)) })
	t.Logf("a new job ran %v after Redis was back, what had ended was settled within %v", took.Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
	if took > 2*time.Second {
		t.Errorf("all went on after %v, want 2 s", took)
	}
	all := append(through, within...)
	eventually(t, patience, "all are done", func() bool { return h.completed() == int64(len(all)+1) })
	for _, id := range all {
		starts, ends := h.ledger.starts(id), h.ledger.ends(id)
		if len(starts) != 1 || len(ends) != 1 || ends[0].result != "ok" {
			t.Errorf("job %s: starts %v ends %v, want it run once and not cancelled", id, starts, ends)
		}
	}
	if q := h.queue("default").Totals; q.Stalled+q.Failed+q.Stale+q.Retried+q.Dead != 0 {
		t.Errorf("%+v, want no attempt spent", q)
	}
	if n := len(h.nodes()); n != 3 {
		t.Errorf("%d sessions, want the three of the start", n)
	}
	if condemned := h.rdb.ZCard(context.Background(), h.prefix+":{cluster}:condemned").Val(); condemned != 0 {
		t.Errorf("%d sessions were condemned", condemned)
	}
}

func TestNodeWaitsForARedisThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	h, server := ownHerd(t, redistest.WithAOF("always"))
	server.Kill()
	n := h.startWorking(h.config("n1"))
	pass(500 * time.Millisecond)
	server.Restart()
	id := h.do(work{})
	eventually(t, patience, "the job runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	if err := n.stop(); err != nil {
		t.Error(err)
	}
}

func TestNodeThatWaitsForRedisStopsAtOnce(t *testing.T) {
	t.Parallel()
	h, server := ownHerd(t)
	server.Kill()
	n := h.startWorking(h.config("n1"))
	pass(200 * time.Millisecond)
	began := time.Now()
	if err := n.stop(); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it stopped after %v", took)
	}
}

// Redis comes back without a settlement that it had acknowledged, and every
// connection of the node was idle: the library replaces them without a word, so
// no call fails that could tell of it.
func TestARollCallFollowsABreakThatNoCallMet(t *testing.T) {
	t.Parallel()
	h, _ := ownHerd(t)
	h.spawn(order{Name: "n1"})
	h.awaitHerd(1)
	ctx := context.Background()
	jobs, active := h.prefix+":{default}:jobs", h.prefix+":{default}:active"
	id := h.do(work{Sleep: 500 * time.Millisecond})
	eventually(t, patience, "it runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	body, token := h.rdb.HGet(ctx, jobs, id).Val(), h.rdb.HGet(ctx, active, id).Val()
	eventually(t, patience, "it is settled", func() bool { return h.completed() == 1 })
	h.rdb.HSet(ctx, jobs, id, body)
	h.rdb.HSet(ctx, active, id, token)
	broke := time.Now()
	if err := h.rdb.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "it is given back and runs again", func() bool { return len(h.ledger.starts(id)) == 2 })
	if took := time.Since(broke); took > lookUpEvery/2 {
		t.Errorf("that took %v: the regular roll call found it, not the one after a broken connection", took)
	}
}

// Redis lost its last writes and gives a token out again, for another job, while
// the first one still runs. The answer to that claim is lost too: only the roll
// call can find the second job, which is not the first one.
func TestARollCallKnowsAJobWhoseTokenAnotherOneHas(t *testing.T) {
	t.Parallel()
	h, _ := ownHerd(t)
	h.spawn(order{Name: "n1"})
	h.awaitHerd(1)
	ctx := context.Background()
	key := func(name string) string { return h.prefix + ":{default}:" + name }
	first := h.do(work{Sleep: time.Minute})
	eventually(t, patience, "the first job runs", func() bool { return len(h.ledger.starts(first)) == 1 })
	second := h.do(work{}, queue.JobOptions{Delay: time.Hour})
	h.rdb.HSet(ctx, key("active"), second, h.rdb.HGet(ctx, key("active"), first).Val())
	h.rdb.ZRem(ctx, key("delayed"), second)
	if err := h.rdb.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the second job is given back and runs", func() bool { return len(h.ledger.ends(second)) == 1 })
	if ends := h.ledger.ends(first); len(ends) != 0 {
		t.Errorf("the first job ended: %v", ends)
	}
}
