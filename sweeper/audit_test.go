package sweeper

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// C001: crash of the promoter between taking due jobs out and putting them in.
func TestC001ThePromoterDiesAtAnyInstant(t *testing.T) {
	w := onRedis(t)
	const jobs = 5000
	ids := w.enqueue("q", jobs, queue.JobOptions{Delay: time.Hour})
	w.hasten("q")
	value := lockValue("c001", "n1-a")
	w.must(w.rdb.Set(w.ctx, w.client.SweeperKey(), value, 0).Err())
	moved := func() int64 { return w.info("q").Waiting }
	deaths, longest, before := 0, 8*time.Millisecond, int64(0)
	for ; before < jobs && deaths < 500; deaths++ {
		n := w.node("n1-a")
		_, stop := n.occupy(value)
		pause(w.ctx, rand.N(longest), nil) // the instant of its death
		n.line.breakBy(func(string) error { return errors.New("dead") })
		n.hangUp()
		stop()
		if now := moved(); now > before {
			before, longest = now, max(longest/2, 8*time.Millisecond)
		} else { // too short for this machine now
			longest = min(2*longest, time.Second)
		}
	}
	t.Logf("%d deaths", deaths)
	w.conserved("q", ids)
	if i := w.info("q"); i.Waiting != jobs || i.Totals.Promoted != jobs {
		t.Errorf("%+v", i)
	}
}

// C007: id in waiting, body missing; and the other way round.
func TestC007OrphansAndStraysAreRepairedAndCounted(t *testing.T) {
	w := onRedis(t)
	ids := w.enqueue("q", 40, queue.JobOptions{})
	ids = append(ids, w.enqueue("q", 10, queue.JobOptions{Delay: time.Hour})...)
	w.must(w.rdb.HDel(w.ctx, w.key("q", "jobs"), ids[0], ids[1], ids[2], ids[45]).Err())
	w.must(w.rdb.ZRem(w.ctx, w.key("q", "waiting"), ids[10], ids[11]).Err())
	n := w.node("n1-a").start()
	w.eventually("all is mended", 5*time.Second, func() bool { return n.Stats().Orphans == 4 && n.Stats().Strays == 2 })
	sound := append(append([]string{}, ids[3:45]...), ids[46:]...)
	w.conserved("q", sound)
	w.eventually("it is told", time.Second, func() bool { return n.log.count("repaired queue q") >= 1 })
	if lines := n.log.count("repaired queue q"); lines > 2 {
		t.Errorf("%d lines", lines)
	}
	if i := w.info("q"); i.Totals.Orphans != 4 || i.Totals.Strays != 2 {
		t.Errorf("%+v", i.Totals)
	}
}

// C049: a large set of overdue jobs in one queue starves no other. C048: each
// step is bounded, so Redis answers others meanwhile.
func TestC049AnOverdueQueueStarvesNoOther(t *testing.T) {
	w := onRedis(t)
	const overdue = 20_000
	w.must(w.client.Register(w.ctx, "b"))
	w.enqueue("a", overdue, queue.JobOptions{Delay: time.Hour})
	w.hasten("a")
	n := w.node("n1-a").start()
	w.eventually("the flood begins", 10*time.Second, func() bool { return n.Stats().Promoted > 0 })
	var worst, ping time.Duration
	probes := 0
	for n.Stats().Promoted < overdue {
		began := time.Now()
		w.must(w.rdb.Ping(w.ctx).Err())
		ping = max(ping, time.Since(began))
		worst = max(worst, w.lateness("b", 20*ms))
		probes++
	}
	t.Logf("%d probes during the flood: lateness at most %v, ping at most %v", probes, worst, ping)
	if worst > time.Second || ping > 250*ms { // a loaded machine runs these under the race detector
		t.Errorf("queue b is late by up to %v, a ping took up to %v", worst, ping)
	}
	if i := w.info("a"); i.Waiting != overdue || i.Delayed != 0 {
		t.Errorf("%+v", i)
	}
	if calls := n.line.calls("promote"); calls < overdue/queue.PromoteBatch {
		t.Errorf("%d calls moved %d jobs", calls, overdue)
	}
}

// hasten makes all that is delayed in a queue overdue.
func (w *world) hasten(q string) {
	w.t.Helper()
	w.must(w.rdb.Eval(w.ctx, `
		local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
		for i = 1, #all, 2 do redis.call('ZADD', KEYS[1], all[i + 1] - 3700000, all[i]) end
		return #all`, []string{w.key(q, "delayed")}).Err())
}

// lateness says how long after its due time a job came into waiting.
func (w *world) lateness(q string, delay time.Duration) time.Duration {
	w.t.Helper()
	due := time.Now().Add(delay)
	before := w.info(q).Waiting
	w.enqueue(q, 1, queue.JobOptions{Delay: delay})
	w.eventually("it is promoted", 10*time.Second, func() bool { return w.info(q).Waiting > before })
	return time.Since(due)
}

func TestTrimGoesOnWhileThereIsMore(t *testing.T) {
	w := onRedis(t)
	const ended = 1050
	w.enqueue("q", ended, queue.JobOptions{Retention: ms})
	var settled []*queue.Settlement
	for _, c := range w.claim("n2-b", "q", ended) {
		settled = append(settled, c.Settle("n2", nil))
	}
	s, err := w.client.Session("n3-c")
	w.must(err)
	for len(settled) > 0 { // whoever shows the token may settle
		k := min(len(settled), queue.MaxSettle)
		_, err := s.Exchange(w.ctx, "q", queue.Exchange{Settle: settled[:k]})
		w.must(err)
		settled = settled[k:]
	}
	if i := w.info("q"); i.Completed != ended {
		t.Fatalf("%+v", i)
	}
	n := w.node("n1-a").start()
	w.eventually("all is forgotten", 5*time.Second, func() bool { return n.Stats().Forgotten == ended })
	w.conserved("q", nil)
}

func TestAtMostFiveQueuesAreAuditedASecond(t *testing.T) {
	t.Parallel()
	a := &auditor{}
	start := time.Now()
	queues := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
	a.meet(queues, start)
	audits := map[string]int{}
	for second := range 31 {
		due := a.due(start.Add(time.Duration(second) * time.Second))
		if len(due) > auditsAtOnce {
			t.Errorf("%d at once", len(due))
		}
		for _, q := range due {
			audits[q]++
		}
	}
	for _, q := range queues {
		if audits[q] < 3 || audits[q] > 4 {
			t.Errorf("%s was audited %d times in 31 s", q, audits[q])
		}
	}
}

func TestAQueueThatCannotBeReadIsSurveyedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a")
		w.enqueue("q", 1, queue.JobOptions{})
		w.register("n2-b")
		w.claim("n2-b", "q", 1)
		_, err := w.client.Condemn(w.ctx, "n2-b", w.beatOf("n2-b"))
		w.must(err)
		n.line.breakBy(func(command string) error {
			if command == "hscan" {
				return context.DeadlineExceeded
			}
			return nil
		})
		n.start()
		w.pass(3 * time.Second)
		n.line.breakBy(nil)
		w.pass(2 * time.Second)
		if i := w.info("q"); i.Waiting != 1 {
			t.Errorf("%+v", i)
		}
	})
}
