package node

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/redistest"
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
