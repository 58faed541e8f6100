package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

// What the two articles behind Kelpie promise, each by name.

func TestOriginsEnqueueReturnsTheIDAndTheRecordTellsWhen(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	before := h.redisTime()
	id := h.enqueue("mail", "hello", queue.JobOptions{Queue: "mails", ID: "my-id", Delay: 90 * time.Second, MaxAttempts: 3})
	after := h.redisTime()
	r, err := h.client.Job(context.Background(), "mails", id)
	if err != nil || id != "my-id" {
		t.Fatalf("%q, %v", id, err)
	}
	if r.State != queue.Delayed || string(r.Payload) != "hello" || r.MaxAttempts != 3 || r.Kind != "mail" {
		t.Errorf("%+v", r)
	}
	if r.EnqueuedAt.Before(before) || r.EnqueuedAt.After(after) || r.DueAt.Sub(r.EnqueuedAt) != 90*time.Second {
		t.Errorf("enqueued %v and due %v, want between %v and %v, and 90 s later", r.EnqueuedAt, r.DueAt, before, after)
	}
	for _, key := range h.rdb.Keys(context.Background(), "*mails*").Val() {
		if strings.Contains(key, h.prefix) != strings.HasPrefix(key, h.prefix+":{mails}:") {
			t.Errorf("key %s does not carry the prefix", key)
		}
	}
	if a, b := h.enqueue("mail", "same"), h.enqueue("mail", "same"); a == b || h.queue("default").Waiting != 2 {
		t.Errorf("equal payloads are ids %s and %s, want two jobs", a, b)
	}
}

// redisTime is Redis's clock in whole milliseconds.
func (h *herd) redisTime() time.Time {
	h.t.Helper()
	now, err := h.rdb.Time(context.Background()).Result()
	if err != nil {
		h.t.Fatal(err)
	}
	return now.Truncate(time.Millisecond)
}

func TestOriginsQueuedWith5And2And10SecondsTheyRun2And5And10NeverEarly(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	h.startWorking(h.config("n1"))
	want := map[string]time.Duration{}
	var order []string
	for _, s := range []time.Duration{5, 2, 10} {
		id := h.do(work{}, queue.JobOptions{Delay: s * time.Second})
		want[id] = s * time.Second
		order = append(order, id)
	}
	eventually(t, patience, "all three run", func() bool { return h.completed() == 3 })
	var ran []string
	for _, e := range h.ledger.of("start", "", "") {
		ran = append(ran, e.id)
		late := e.at.Sub(h.due(e.id, want[e.id]))
		t.Logf("the job of %v started %v after its due time", want[e.id], late.Round(time.Microsecond))
		if late < 0 || late > 2*time.Second {
			t.Errorf("the job of %v started %v after its due time", want[e.id], late)
		}
	}
	if wanted := []string{order[1], order[0], order[2]}; !slices.Equal(ran, wanted) {
		t.Errorf("ran %v, want %v", ran, wanted)
	}
}

// due is when a job that was enqueued by its UUIDv7 was due, at the soonest: the
// id was made before Redis stored the job, on the same machine.
func (h *herd) due(id string, delay time.Duration) time.Time {
	var ms int64
	if _, err := fmt.Sscanf(strings.ReplaceAll(id, "-", "")[:12], "%x", &ms); err != nil {
		h.t.Fatal(err)
	}
	return time.UnixMilli(ms).Add(delay)
}

func TestOriginsMovedToAnotherTimeAJobRunsThenAndOnlyThen(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	h.startWorking(h.config("n1"))
	ctx := context.Background()
	sooner := h.do(work{}, queue.JobOptions{Delay: time.Hour})
	later := h.do(work{}, queue.JobOptions{Delay: time.Second})
	dueSooner, err := h.client.Reschedule(ctx, "default", sooner, 2*time.Second, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	dueLater, err := h.client.Reschedule(ctx, "default", later, 0, h.redisTime().Add(4*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "both run", func() bool { return h.completed() == 2 })
	pass(500 * time.Millisecond)
	for id, due := range map[string]time.Time{sooner: dueSooner, later: dueLater} {
		starts := h.ledger.starts(id)
		if len(starts) != 1 || starts[0].at.Before(due) || starts[0].at.Sub(due) > 2*time.Second {
			t.Errorf("due %v, started %v: want once, then and only then", due, starts)
		}
	}
}

func TestOriginsThreeAttemptsFailAt0And1And5Seconds(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	h.startWorking(h.config("n1"))
	id := h.do(work{Fail: 100})
	eventually(t, patience, "it is dead", func() bool { return h.job(id).State == queue.Dead })
	starts := h.ledger.starts(id)
	if len(starts) != 3 {
		t.Fatalf("%d attempts: %v, want 3", len(starts), starts)
	}
	for i, want := range []time.Duration{0, time.Second, 5 * time.Second} {
		at := starts[i].at.Sub(starts[0].at)
		t.Logf("attempt %d at %v", i+1, at.Round(time.Millisecond))
		if at < want || at > want+want/5+2*time.Second { // 10 % jitter each, never less
			t.Errorf("attempt %d at %v, want %v", i+1, at, want)
		}
	}
	r := h.job(id)
	if r.Attempts != 3 || r.Failures != 3 || len(r.Errors) != 3 || r.Errors[0].Error != errWork.Error() || r.FinishedAt.IsZero() ||
		r.Kind != "work" || len(r.Payload) == 0 {
		t.Errorf("%+v: want the whole job with its errors and when it died", r)
	}
	if q := h.queue("default"); q.Totals.Dead != 1 || q.Totals.Retried != 2 || q.Totals.Failed != 3 || q.Dead != 1 {
		t.Errorf("%+v: want it counted once among the dead", q)
	}
}

func TestOriginsManyWorkersNeverShareAJob(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	const jobs = 2000
	var mu sync.Mutex
	ran, fences := map[string]int{}, map[int64]bool{}
	for i := range 4 {
		c := h.config(fmt.Sprint("n", i))
		c.Workers = 25
		h.start(c, func(n *Node) {
			Handle(n, raw, func(_ context.Context, j *queue.Job[[]byte]) error {
				mu.Lock()
				defer mu.Unlock()
				ran[j.ID]++
				if fences[j.Fence] {
					t.Errorf("fence %d was given twice", j.Fence)
				}
				fences[j.Fence] = true
				return nil
			})
		})
	}
	requests := make([]queue.Request, jobs)
	for i := range requests {
		requests[i] = queue.Request{Kind: "raw"}
	}
	for _, r := range h.client.EnqueueMany(context.Background(), requests) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	eventually(t, patience, "all are done", func() bool { return h.completed() == jobs })
	mu.Lock()
	defer mu.Unlock()
	for id, n := range ran {
		if n != 1 {
			t.Errorf("job %s ran %d times", id, n)
		}
	}
	if len(ran) != jobs {
		t.Errorf("%d jobs ran, want %d", len(ran), jobs)
	}
}

func TestOriginsAMissingBodyHarmsNobody(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	ids := h.doMany(20, work{})
	late := h.doMany(5, work{}, queue.JobOptions{Delay: time.Second})
	ctx := context.Background()
	h.rdb.HDel(ctx, h.prefix+":{default}:jobs", ids[0], ids[7], ids[19], late[2])
	h.startWorking(h.config("n1"))
	eventually(t, patience, "the 21 others are done", func() bool { return h.completed() == 21 })
	eventually(t, patience, "nothing is left", func() bool {
		q := h.queue("default")
		return q.Waiting+q.Delayed+q.Active == 0 && q.Totals.Orphans == 4
	})
}

func TestOriginsACompletedJobLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	h.startWorking(h.config("n1"))
	id := h.do(work{Fail: 1}, queue.JobOptions{Backoff: queue.Backoff{Base: time.Millisecond}})
	eventually(t, patience, "it is done", func() bool { return h.completed() == 1 })
	for _, key := range []string{"jobs", "tries", "active"} {
		if h.rdb.HExists(context.Background(), h.prefix+":{default}:"+key, id).Val() {
			t.Errorf("%s still has the job", key)
		}
	}
}

func TestOriginsWorkersAreBoundedAndASlowJobBlocksNone(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c := h.config("n1")
	c.Workers = 5
	var now, most atomic.Int64
	slow := make(chan struct{})
	defer close(slow)
	h.start(c, func(n *Node) {
		Handle(n, raw, func(_ context.Context, j *queue.Job[[]byte]) error {
			for old := most.Load(); now.Load() >= old && !most.CompareAndSwap(old, now.Load()+1); old = most.Load() {
			}
			now.Add(1)
			defer now.Add(-1)
			if string(j.In) == "slow" {
				<-slow
			} else {
				pass(5 * time.Millisecond)
			}
			return nil
		})
	})
	h.enqueue("raw", "slow")
	for range 200 {
		h.enqueue("raw", "quick")
	}
	eventually(t, patience, "the quick ones are done while the slow one runs", func() bool { return h.completed() == 200 })
	if most.Load() > 5 {
		t.Errorf("%d handlers ran at a time, want at most 5", most.Load())
	}
}

func TestOriginsADeadWorkersJobsComeBackAndSpendAnAttempt(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	n1 := h.spawn(order{Name: "n1"})
	ids := h.doMany(3, work{Sleep: 5 * time.Second})
	last := h.do(work{Sleep: 5 * time.Second}, queue.JobOptions{MaxAttempts: 1})
	eventually(t, patience, "all run", func() bool { return len(h.ledger.holds("n1")) == 4 })
	var log logBook
	c := h.config("n2")
	c.Log = zerolog.New(&log)
	n2 := h.startWorking(c)
	h.awaitHerd(2)
	n1.kill()
	eventually(t, patience, "the one at its limit is dead", func() bool { return h.job(last).State == queue.Dead })
	if r := h.job(last); r.Stalls != 1 || r.Failures != 0 || len(r.Errors) != 1 || r.Errors[0].Reason != queue.ReasonStalled || r.Errors[0].Node != "n1" {
		t.Errorf("%+v, want it stalled on n1 and not failed", r)
	}
	eventually(t, patience, "the others are done", func() bool { return h.completed() == 3 })
	for _, id := range ids {
		if starts := h.ledger.starts(id); len(starts) != 2 || starts[1].attempt != 2 || starts[1].node != "n2" {
			t.Errorf("job %s: %v, want a second attempt on n2", id, starts)
		}
	}
	if err := n2.stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "recovered 4 jobs of node n1") {
		t.Errorf("no line says how many jobs came back:\n%s", log.String())
	}
}

func TestOriginsJobsSurviveARestartOfRedis(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string][]redistest.Option{
		"with AOF": {redistest.WithAOF("always")},
		"with RDB": {redistest.WithArgs("save", "3600 1000000")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, server := ownHerd(t, keep...)
			h.startWorking(h.config("n1"))
			running := h.do(work{Sleep: 3 * time.Second})
			later := h.do(work{}, queue.JobOptions{Delay: 2 * time.Second})
			eventually(t, patience, "the first runs", func() bool { return len(h.ledger.starts(running)) == 1 })
			if name == "with RDB" {
				if err := h.rdb.Save(context.Background()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			server.Kill()
			server.Restart()
			eventually(t, patience, "both are done", func() bool {
				q, err := h.client.Queue(context.Background(), "default")
				return err == nil && q.Totals.Completed == 2
			})
			for _, id := range []string{running, later} {
				if starts := h.ledger.starts(id); len(starts) != 1 {
					t.Errorf("job %s ran %d times, want once", id, len(starts))
				}
			}
		})
	}
}

func TestOriginsTheNodeSaysWhenRedisKeepsNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keep []redistest.Option
		want string
	}{
		"nothing on disk": {nil, "Redis keeps nothing"},
		"snapshots only":  {[]redistest.Option{redistest.WithArgs("save", "3600 1")}, "Redis keeps snapshots only"},
		"AOF":             {[]redistest.Option{redistest.WithAOF("everysec")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := ownHerd(t, tt.keep...)
			var log logBook
			c := h.config("n1")
			c.Log = zerolog.New(&log).Level(zerolog.WarnLevel)
			n := h.startWorking(c)
			eventually(t, patience, "it runs", func() bool { return len(h.nodes()) == 1 })
			if err := n.stop(); err != nil {
				t.Error(err)
			}
			if tt.want == "" && strings.Contains(log.String(), "Redis keeps") || !strings.Contains(log.String(), tt.want) {
				t.Errorf("the log says %q, want %q", log.String(), tt.want)
			}
		})
	}
}
