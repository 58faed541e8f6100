package sweeper

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// conserved checks that each id is in exactly one place with a body, and that
// there is nothing else in the queue.
func (w *world) conserved(q string, ids []string) {
	w.t.Helper()
	places := map[string]int{}
	for _, place := range []string{"waiting", "delayed", "dead", "completed", "cancelled"} {
		members, err := w.rdb.ZRange(w.ctx, w.key(q, place), 0, -1).Result()
		w.must(err)
		for _, id := range members {
			places[id]++
		}
	}
	held, err := w.rdb.HKeys(w.ctx, w.key(q, "active")).Result()
	w.must(err)
	for _, id := range held {
		places[id]++
	}
	bodies, err := w.rdb.HKeys(w.ctx, w.key(q, "jobs")).Result()
	w.must(err)
	if len(bodies) != len(ids) || len(places) != len(ids) {
		w.t.Errorf("%s: %d ids, %d bodies, %d placed", q, len(ids), len(bodies), len(places))
	}
	for _, id := range ids {
		if places[id] != 1 {
			w.t.Errorf("%s: %s is in %d places", q, id, places[id])
		}
	}
}

// C048 in small: what a node held is moved in bounded batches, from all queues.
func TestADeadNodesJobsAreRecoveredFromAllQueues(t *testing.T) {
	w := onRedis(t)
	ids := map[string][]string{}
	for i, held := range []int{0, 1, 100, 450} {
		q := fmt.Sprint("q", i)
		ids[q] = w.enqueue(q, held+5, queue.JobOptions{})
		if held > 0 {
			w.claim("n9-z", q, held)
		}
	}
	n := w.node("n1-a").start().sweeping()
	w.register("n9-z")
	began := time.Now()
	n.witness.dead.Store("n9-z", true)
	w.eventually("551 jobs are back", 5*time.Second, func() bool { return n.Stats().Reclaimed == 551 })
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the recovery took %v", took)
	}
	w.eventually("it is told", time.Second, func() bool { return n.log.count("recovered 551 jobs of node n9") == 1 })
	for q, all := range ids {
		w.conserved(q, all)
		if i := w.info(q); int(i.Waiting) != len(all) || i.Active != 0 {
			t.Errorf("%s: %+v", q, i)
		}
		if mark := w.rdb.HGet(w.ctx, w.key(q, "holders"), "n9-z").Val(); !strings.HasPrefix(mark, "gone ") {
			t.Errorf("%s: the mark is %q", q, mark)
		}
	}
	if calls, least := n.line.calls("reclaim"), 4+1+1+5; calls < least {
		t.Errorf("%d calls moved all, want at least %d bounded ones", calls, least)
	}
}

// Condemned by somebody else (a new incarnation, a bye that left something):
// found within a second.
func TestWhomAnotherCondemnedIsEmptiedSoon(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a").start()
		w.enqueue("q", 3, queue.JobOptions{})
		w.enqueue("other", 1, queue.JobOptions{})
		w.pass(5 * time.Second)
		w.register("n2-b")
		w.claim("n2-b", "q", 3)
		_, err := w.client.Beat(w.ctx, queue.Beat{Session: "n2-b", Bye: true})
		w.must(err)
		w.pass(rosterEvery + 10*ms)
		if i := w.info("q"); i.Waiting != 3 || i.Active != 0 {
			t.Errorf("%+v\n%s", i, n.log)
		}
	})
}

// What the sweeper before left half done is found at the start of the term.
func TestANewSweeperFinishesWhatTheLastOneBegan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for _, q := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			w.enqueue(q, 3, queue.JobOptions{})
			w.register("n2-b")
			w.claim("n2-b", q, 3)
		}
		_, err := w.client.Condemn(w.ctx, "n2-b", w.beatOf("n2-b"))
		w.must(err)
		// the last one came as far as the mark in a, and half of b
		_, err = w.client.Reclaim(w.ctx, "a", 1, "n2-b", "n2", nil)
		w.must(err)
		w.must(w.rdb.HSet(w.ctx, w.key("b", "holders"), "n2-b", "gone 1").Err())
		w.node("n1-a").start()
		w.pass(500 * ms)
		for _, q := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			if i := w.info(q); i.Waiting != 3 || i.Active != 0 {
				t.Errorf("%s: %+v", q, i)
			}
		}
	})
}

// Errors in the middle of a recovery: it goes on until everything is back.
func TestARecoveryGoesOnAfterErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a").start()
		for _, q := range []string{"a", "b"} {
			w.enqueue(q, 250, queue.JobOptions{})
			w.register("n2-b")
			w.claim("n2-b", q, 250)
		}
		chance := rand.New(rand.NewPCG(1, 2)) // under the lock of the line
		n.line.breakBy(func(command string) error {
			if (command == "reclaim" || command == "hscan") && chance.IntN(5) < 2 {
				return errors.New("i/o timeout")
			}
			return nil
		})
		n.witness.dead.Store("n2-b", true)
		w.pass(time.Minute)
		for _, q := range []string{"a", "b"} {
			if i := w.info(q); i.Waiting != 250 || i.Active != 0 || i.Totals.Stalled != 250 {
				t.Errorf("%s: %+v", q, i)
			}
		}
	})
}

// A job whose nodes die is dead when its attempts are spent, with a line of its own.
func TestAJobThatIsDeadByStallsIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a").start()
		id := w.enqueue("q", 1, queue.JobOptions{MaxAttempts: 1})[0]
		w.register("n2-b")
		w.claim("n2-b", "q", 1)
		n.witness.dead.Store("n2-b", true)
		w.pass(4 * time.Second)
		if got := w.state("q", id); got != queue.Dead {
			t.Errorf("it is %s", got)
		}
		if n.log.count("job dead") != 1 || n.log.count(`"dead":1`) != 1 {
			t.Errorf("the log:\n%s", n.log)
		}
	})
}

// A roll-back of Redis: live nodes are missing for a beat, or for longer, and
// keep their jobs; one that never comes back loses them.
func TestAfterARollBackLiveNodesKeepTheirJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a").start()
		w.pass(time.Second)
		w.node("n2-b").start()
		w.enqueue("q", 6, queue.JobOptions{})
		w.claim("n2-b", "q", 3)
		w.claim("n3-c", "q", 3) // of a node that is no more, and was never condemned
		forget := func() { w.must(w.rdb.Del(w.ctx, w.key("cluster", "sessions")).Err()) }
		forget()
		w.pass(800 * ms)
		if got := n.Stats().Reclaimed; got != 0 {
			t.Fatalf("%d jobs were reclaimed at once", got)
		}
		for range 30 {
			w.pass(333 * ms)
			forget()
		}
		if s := n.Stats(); s.Reclaimed != 3 {
			t.Errorf("%d jobs were reclaimed, want the 3 of the node that is no more\n%s", s.Reclaimed, n.log)
		}
		if i := w.info("q"); i.Active != 3 || i.Waiting != 3 {
			t.Errorf("%+v", i)
		}
	})
}

// A node that registered a moment ago and was lost by a roll-back is one that
// the watch has never seen: it has missed it for as long as it has watched.
func TestANameIsMissedHereAndInTheWatch(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	a := &auditor{term: newTerm(&Sweeper{o: Options{Session: "me", Silence: 2 * time.Second, Watch: NewWatch()}}, nil), absent: map[string]time.Time{}}
	for i := range 10 {
		a.s.o.Watch.See(at(time.Duration(i)*time.Second), at(time.Duration(i)*time.Second), nil)
	}
	now := at(9 * time.Second)
	if !a.wait("new", false, false, now) || len(a.ward.take()) != 0 {
		t.Error("at first sight it is not waited for")
	}
	if !a.wait("new", false, false, now.Add(time.Second)) || len(a.ward.take()) != 0 {
		t.Error("after a second it is not waited for")
	}
	if a.wait("new", true, false, now.Add(time.Second)) || a.wait("me", false, false, now) {
		t.Error("a session is waited for, or oneself")
	}
	if !a.wait("new", false, false, now.Add(1900*ms)) || len(a.ward.take()) != 0 {
		t.Error("the wait did not begin anew")
	}
	if a.wait("condemned", false, true, now) || len(a.ward.take()) != 1 {
		t.Error("a condemned one is waited for")
	}
	a.s.o.Watch.See(at(10*time.Second), at(10*time.Second), nil)
	a.s.o.Watch.See(at(11*time.Second), at(11*time.Second), nil)
	a.s.o.Watch.See(at(12*time.Second), at(12*time.Second), nil)
	if a.wait("new", false, false, at(12900*ms)) || len(a.ward.take()) != 1 {
		t.Error("after two seconds it is not taken for dead")
	}
}

// Who gets no answer to its own beats cannot tell who is missing.
func TestWithoutAWatchNobodyIsMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.node("n1-a").start()
		w.pass(time.Second)
		n.heart.breakBy(func(string) error { return errors.New("i/o timeout") })
		w.enqueue("q", 3, queue.JobOptions{})
		w.claim("n3-c", "q", 3)
		w.pass(30 * time.Second)
		if s := n.Stats(); s.Reclaimed != 0 || !s.Sweeping {
			t.Fatalf("without a watch: %+v", s)
		}
		n.heart.breakBy(nil)
		w.pass(5 * time.Second)
		if got := n.Stats().Reclaimed; got != 3 {
			t.Errorf("with one again %d jobs were reclaimed", got)
		}
	})
}

// FLUSHALL: everything is gone, the sweeper and the others live.
func TestAFlushCondemnsNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := []*node{w.node("n1-a").start(), w.node("n2-b").start()}
		w.pass(5 * time.Second)
		w.redis.FlushAll()
		w.pass(5 * time.Second)
		id := w.enqueue("q", 1, queue.JobOptions{Delay: 1500 * ms})[0]
		w.pass(1502 * ms)
		if got := w.state("q", id); got != queue.Waiting {
			t.Errorf("a job after the flush is %s", got)
		}
		sweepers := 0
		for _, n := range nodes {
			s := n.Stats()
			if s.Sweeping {
				sweepers++
			}
			if s.Condemned+s.Reclaimed != 0 || !w.lives(n.o.Session) {
				t.Errorf("%s: %+v", n.o.Session, s)
			}
		}
		if sweepers != 1 {
			t.Errorf("%d sweepers", sweepers)
		}
	})
}

// C015: a job is completed and removed while the recovery holds a stale list.
func TestC015AStaleListReclaimsNothing(t *testing.T) {
	w := onRedis(t)
	ids := w.enqueue("q", 10, queue.JobOptions{})
	claims := w.claim("n2-b", "q", 10)
	s, err := w.client.Session("n3-c")
	w.must(err)
	var settled []*queue.Settlement
	for _, c := range claims {
		settled = append(settled, c.Settle("n2", nil))
	}
	n2, err := w.client.Session("n2-b")
	w.must(err)
	for range 2 { // turn 1 was the claim's
		_, err = n2.Exchange(w.ctx, "q", queue.Exchange{Settle: settled})
	}
	w.must(err)
	got, err := w.client.Reclaim(w.ctx, "q", 1, "n2-b", "n2", ids)
	w.must(err)
	x, err := s.Exchange(w.ctx, "q", queue.Exchange{Want: 10})
	w.must(err)
	if got.Jobs() != 0 || len(x.Claims) != 0 {
		t.Errorf("%d were reclaimed, %d ran again", got.Jobs(), len(x.Claims))
	}
}

// C016 and C015 with living nodes: surveys in a tight loop, while sessions come,
// claim and settle, and go.
func TestC016TheLivingAreNeverReclaimed(t *testing.T) {
	w := onRedis(t)
	const workers, rounds = 4, 60
	w.enqueue("q", workers*rounds*5, queue.JobOptions{})
	n := w.node("n1-a")
	value := lockValue("c016", "n1-a") // a lock that a loaded machine does not lose
	w.must(w.rdb.Set(w.ctx, w.client.SweeperKey(), value, 0).Err())
	n.occupy(value)
	n.sweeping()
	survey := &auditor{term: n.term.Load(), absent: map[string]time.Time{}}
	survey.meet([]string{"q"}, time.Now())
	done := make(chan struct{})
	var surveys sync.WaitGroup
	surveys.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				survey.survey(w.ctx, []string{"q"})
			}
		}
	})
	var nodes sync.WaitGroup
	for i := range workers {
		nodes.Go(func() { w.liveShort(fmt.Sprint("w", i), rounds) })
	}
	nodes.Wait()
	close(done)
	surveys.Wait()
	i := w.info("q")
	if s := n.Stats(); s.Reclaimed != 0 || s.Condemned != 0 || i.Totals.Stalled+i.Totals.Stale != 0 {
		t.Errorf("%+v, %+v", s, i.Totals)
	}
	if i.Totals.Completed != workers*rounds*5 {
		t.Errorf("%d were completed", i.Totals.Completed)
	}
}

// liveShort is a node that takes a new session for each five jobs.
func (w *world) liveShort(name string, rounds int) {
	c, _ := w.space(nil)
	for r := range rounds {
		session := fmt.Sprintf("%s-%d", name, r)
		if _, err := c.Beat(w.ctx, queue.Beat{Session: session}); err != nil {
			w.t.Error(err)
			return
		}
		s, err := c.Session(session)
		if err != nil {
			w.t.Error(err)
			return
		}
		x, err := s.Exchange(w.ctx, "q", queue.Exchange{Want: 5})
		if err != nil {
			w.t.Error(err)
			return
		}
		var settled []*queue.Settlement
		for _, claim := range x.Claims {
			settled = append(settled, claim.Settle(name, nil))
		}
		if _, err := s.Exchange(w.ctx, "q", queue.Exchange{Settle: settled, Bye: true}); err != nil {
			w.t.Error(err)
			return
		}
		if _, err := c.Beat(w.ctx, queue.Beat{Session: session, Bye: true}); err != nil {
			w.t.Error(err)
			return
		}
	}
}
