package life

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

// driver lets the real scripts lead lives at random, and late and copied
// settlements with them.
type driver struct {
	t        *testing.T
	rand     *rand.Rand
	rdb      *redis.Client
	space    *queue.Client
	sessions []*queue.Session
	claims   map[string][]*queue.Claim // by session, also of jobs that it has lost
	ids      []string
	epoch    int64
	n        int
}

func (d *driver) must(err error) {
	d.t.Helper()
	if err != nil && !errors.Is(err, queue.ErrExists) && !errors.Is(err, queue.ErrWrongState) && !errors.Is(err, queue.ErrNoJob) {
		d.t.Fatal(err)
	}
}

func (d *driver) join(i int) {
	d.n++
	s, err := d.space.Session(fmt.Sprintf("n%d-%d", i, d.n))
	d.must(err)
	_, err = d.space.Beat(d.t.Context(), queue.Beat{Session: s.ID()})
	d.must(err)
	d.sessions[i] = s
}

func (d *driver) raise() {
	lock := "0123456789012345678901" + d.sessions[0].ID()
	d.must(d.rdb.Set(d.t.Context(), d.space.Key("cluster", "sweeper"), lock, 0).Err())
	epoch, err := d.space.Raise(d.t.Context(), lock, 0)
	d.must(err)
	d.epoch = epoch
}

func (d *driver) act() {
	ctx := d.t.Context()
	i := d.rand.IntN(len(d.sessions))
	switch d.rand.IntN(12) {
	case 0, 1, 2:
		o := queue.JobOptions{Queue: "q", MaxAttempts: 1 + d.rand.IntN(4), Backoff: queue.Backoff{Base: time.Millisecond, Max: time.Millisecond}}
		if d.rand.IntN(3) == 0 {
			o.ID = fmt.Sprintf("chosen-%d", d.rand.IntN(20))
		}
		if d.rand.IntN(3) == 0 {
			o.Delay = time.Duration(d.rand.IntN(3)) * time.Millisecond
		}
		if d.rand.IntN(4) == 0 {
			o.Retention = time.Millisecond
		}
		id, err := d.space.Enqueue(ctx, queue.Request{Kind: "k", Payload: []byte("x"), JobOptions: o})
		d.must(err)
		d.ids = append(d.ids, id)
	case 3, 4, 5, 6, 7:
		d.exchange(i)
	case 8:
		_, err := d.space.Promote(ctx, "q", d.epoch)
		d.must(err)
		_, err = d.space.Trim(ctx, "q", d.epoch, queue.TrimCursor{})
		d.must(err)
	case 9:
		d.die(i)
	default:
		if len(d.ids) == 0 {
			return
		}
		id := d.ids[d.rand.IntN(len(d.ids))]
		if d.rand.IntN(2) == 0 {
			d.must(d.space.Revive(ctx, "q", []string{id})[0].Err)
		} else {
			_, err := d.space.Reschedule(ctx, "q", id, time.Duration(d.rand.IntN(3))*time.Millisecond, time.Time{})
			d.must(err)
		}
	}
}

// exchange settles some of what a session ever claimed, some of it twice.
func (d *driver) exchange(i int) {
	s := d.sessions[i]
	x := queue.Exchange{Want: d.rand.IntN(4), Risky: d.rand.IntN(2) == 0}
	for _, c := range d.claims[s.ID()] {
		if d.rand.IntN(3) == 0 {
			continue
		}
		for range 1 + d.rand.IntN(8)/7 {
			end := d.end(c)
			if d.rand.IntN(6) == 0 {
				end.Again()
			}
			x.Settle = append(x.Settle, end)
		}
	}
	reply, err := s.Exchange(d.t.Context(), "q", x)
	d.must(err)
	d.claims[s.ID()] = append(d.claims[s.ID()], reply.Claims...)
	if kept := d.claims[s.ID()]; len(kept) > 6 {
		d.claims[s.ID()] = kept[len(kept)-6:]
	}
}

func (d *driver) end(c *queue.Claim) *queue.Settlement {
	switch d.rand.IntN(8) {
	case 0, 1:
		return c.Settle("n", errors.New("failed"))
	case 2:
		return c.Settle("n", queue.Discard(errors.New("refused")))
	case 3:
		return c.Settle("n", queue.Snooze(time.Millisecond))
	case 4:
		return c.Released()
	case 5:
		return c.Unserved()
	}
	return c.Settle("n", nil)
}

// die ends a session, by a farewell or by being condemned, and takes what it has.
func (d *driver) die(i int) {
	ctx, s := d.t.Context(), d.sessions[i]
	if d.rand.IntN(3) == 0 {
		_, err := s.Exchange(ctx, "q", queue.Exchange{Bye: true})
		d.must(err)
		_, err = d.space.Beat(ctx, queue.Beat{Session: s.ID(), Bye: true})
		d.must(err)
	} else {
		beat, _, err := d.space.LastBeat(ctx, s.ID())
		d.must(err)
		_, err = d.space.Condemn(ctx, s.ID(), beat)
		d.must(err)
	}
	d.raise()
	var held []string
	for id, err := range d.space.HeldBy(ctx, "q", s.ID()) {
		d.must(err)
		held = append(held, id)
	}
	for _, ids := range [][]string{nil, held} {
		_, err := d.space.Reclaim(ctx, "q", d.epoch, s.ID(), "n", ids)
		d.must(err)
	}
	d.exchange(i) // what it still thinks to have is settled late
	d.join(i)
}

func TestWhatTheScriptsDoIsALife(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Client(t)
			space, err := queue.New(rdb, queue.Options{Prefix: redistest.Prefix(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = space.Close() })
			d := &driver{t: t, rand: rand.New(rand.NewPCG(seed, 2)), rdb: rdb, space: space,
				sessions: make([]*queue.Session, 3), claims: map[string][]*queue.Claim{}}
			for _, q := range []string{"q", Cluster} {
				d.must(space.KeepLog(t.Context(), q, true))
			}
			for i := range d.sessions {
				d.join(i)
			}
			d.raise()
			for range 300 {
				d.act()
			}
			d.judge()
		})
	}
}

// judge replays what Redis logged, and holds the model against what Redis has.
func (d *driver) judge() {
	s, seen := New(0), map[string]int{}
	for _, name := range []string{"q", Cluster} {
		for _, step := range d.log(name) {
			for _, v := range s.Apply(step) {
				d.t.Errorf("%v: %+v", v, step)
			}
			for _, m := range step.Moves {
				seen[m.What+m.Verb]++
			}
		}
	}
	for _, what := range []string{"store", "exists", "claim", "settleC", "settleR", "settleD", "settleS", "settleL", "settleU", "promote", "reclaim", "revive", "reschedule"} {
		if seen[what] == 0 {
			d.t.Errorf("there was no %s; there were %v", what, seen)
		}
	}
	info, err := d.space.Queue(d.t.Context(), "q")
	d.must(err)
	if want, got := convert(info.Totals), s.Queue("q").Totals(); got != want {
		d.t.Errorf("the model counts %+v, Redis %+v", got, want)
	}
	have := map[string]int64{}
	for _, j := range s.Queue("q").Jobs() {
		have[j.Kept()]++
	}
	want := map[string]int64{Waiting: info.Waiting, Delayed: info.Delayed, Active: info.Active, Dead: info.Dead, Completed: info.Completed}
	for place, n := range want {
		if have[place] != n {
			d.t.Errorf("the model has %d %s, Redis %d", have[place], place, n)
		}
	}
}

func convert(t queue.Totals) Totals {
	return Totals{
		Enqueued: t.Enqueued, Claimed: t.Claimed, Completed: t.Completed, Failed: t.Failed, Retried: t.Retried, Dead: t.Dead,
		Cancelled: t.Cancelled, Stale: t.Stale, Promoted: t.Promoted, Orphans: t.Orphans, Strays: t.Strays, Stalled: t.Stalled,
		Revived: t.Revived, Dropped: t.Dropped,
	}
}

// log reads a whole log as a history has it.
func (d *driver) log(name string) (steps []history.Step) {
	entries, err := d.space.ReadLog(d.t.Context(), name, 0, 100_000)
	d.must(err)
	for _, e := range entries {
		s := history.Step{Queue: name, Index: e.Index, US: e.At.UnixMicro(), Script: e.Script, Who: e.Who, Turn: e.Turn, Epoch: e.Epoch}
		for _, m := range e.Moves {
			s.Moves = append(s.Moves, history.Move{
				What: m.What, ID: m.ID, From: string(m.From), To: string(m.To), Fence: m.Fence, Session: m.Session, Shown: m.Shown,
				Verb: m.Verb, Again: m.Again, Due: m.Due, Until: m.Until, Spent: m.Spent, Max: m.Max,
			})
		}
		steps = append(steps, s)
	}
	return steps
}
