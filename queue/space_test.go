package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// space is one job space under test, whose clock stands still.
type space struct {
	t    testing.TB
	ctx  context.Context
	rdb  *redis.Client
	c    *Client
	tap  *tap
	kind string // redis-server or miniredis
	now  time.Time
}

const q = "mail" // the queue of most tests

// noon is where each test's clock starts.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// both runs f on redis-server and on miniredis, each in a space of its own.
func both(t *testing.T, f func(t *testing.T, s *space)) {
	t.Helper()
	t.Parallel()
	redistest.Both(t, func(t *testing.T, rdb *redis.Client, kind string) {
		t.Parallel()
		f(t, newSpace(t, rdb, kind, nil))
	})
}

func newSpace(t testing.TB, rdb *redis.Client, kind string, edit map[string]func(string) string) *space {
	t.Helper()
	prefix := redistest.Prefix(t)
	s := &space{t: t, ctx: t.Context(), rdb: rdb, kind: kind, tap: newTap(prefix+":clock", edit)}
	rdb.AddHook(s.tap)
	c, err := New(rdb, Options{Prefix: prefix, Patience: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.c = c
	t.Cleanup(func() { _ = c.Close() })
	s.setTime(noon)
	return s
}

func (s *space) setTime(t time.Time) {
	s.t.Helper()
	s.now = t
	if err := s.tap.set(s.ctx, s.rdb, t); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) pass(d time.Duration) { s.t.Helper(); s.setTime(s.now.Add(d)) }

func (s *space) key(what string) string { return s.c.keys.of(q, what) }

func (s *space) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// add enqueues one job of kind "k" in queue q and returns its id.
func (s *space) add(o JobOptions) string {
	s.t.Helper()
	o.Queue = or(o.Queue, q)
	id, err := s.c.Enqueue(s.ctx, Request{Kind: "k", Payload: []byte("payload of " + o.ID), JobOptions: o})
	s.ok(err)
	return id
}

// adds enqueues jobs with chosen ids in this order.
func (s *space) adds(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.add(JobOptions{ID: id})
	}
}

func (s *space) session(id string) *Session {
	s.t.Helper()
	n, err := s.c.Session(id)
	s.ok(err)
	return n
}

func (s *space) exchange(n *Session, x Exchange) *Exchanged {
	s.t.Helper()
	out, err := n.Exchange(s.ctx, q, x)
	s.ok(err)
	return out
}

// claim takes up to want jobs; one claims exactly one.
func (s *space) claim(n *Session, want int) []*Claim {
	s.t.Helper()
	return s.exchange(n, Exchange{Want: want}).Claims
}

func (s *space) one(n *Session) *Claim {
	s.t.Helper()
	got := s.exchange(n, Exchange{Want: 1, Risky: true}).Claims
	if len(got) != 1 {
		s.t.Fatalf("claimed %d jobs, want 1", len(got))
	}
	return got[0]
}

// settle sends settlements and returns the verdicts as text.
func (s *space) settle(n *Session, settlements ...*Settlement) string {
	s.t.Helper()
	var b strings.Builder
	for _, v := range s.exchange(n, Exchange{Settle: settlements}).Verdicts {
		b.WriteByte(byte(v))
	}
	return b.String()
}

func (s *space) record(id string) Record {
	s.t.Helper()
	r, err := s.c.Job(s.ctx, q, id)
	s.ok(err)
	return r
}

// state is "" where there is no such job.
func (s *space) state(id string) State {
	s.t.Helper()
	r, err := s.c.Job(s.ctx, q, id)
	if err != nil {
		return ""
	}
	return r.State
}

func (s *space) wantState(id string, want State) {
	s.t.Helper()
	if got := s.state(id); got != want {
		s.t.Errorf("job %s is %q, want %q", id, got, want)
	}
}

func (s *space) totals() Totals {
	s.t.Helper()
	i, err := s.c.Queue(s.ctx, q)
	s.ok(err)
	return i.Totals
}

// epoch takes the sweeper lock for a session and raises its epoch.
func (s *space) epoch(session string) int64 {
	s.t.Helper()
	value := strings.Repeat("x", lockToken) + session
	s.ok(s.rdb.Set(s.ctx, s.c.SweeperKey(), value, 0).Err())
	e, err := s.c.Raise(s.ctx, value, 0)
	s.ok(err)
	return e
}

// reclaim does what a sweeper does about a dead session.
func (s *space) reclaim(epoch int64, session string) Reclaimed {
	s.t.Helper()
	_, err := s.c.Reclaim(s.ctx, q, epoch, session, NodeName(session), nil)
	s.ok(err)
	var ids []string
	for id, err := range s.c.HeldBy(s.ctx, q, session) {
		s.ok(err)
		ids = append(ids, id)
	}
	r, err := s.c.Reclaim(s.ctx, q, epoch, session, NodeName(session), ids)
	s.ok(err)
	return r
}

func (s *space) promote(epoch int64) Promoted {
	s.t.Helper()
	p, err := s.c.Promote(s.ctx, q, epoch)
	s.ok(err)
	return p
}

// waiting lists the ids in the order in which they run.
func (s *space) waiting() string {
	s.t.Helper()
	ids, err := s.rdb.ZRange(s.ctx, s.key("waiting"), 0, -1).Result()
	s.ok(err)
	return strings.Join(ids, " ")
}

func (s *space) wantWaiting(want string) {
	s.t.Helper()
	if got := s.waiting(); got != want {
		s.t.Errorf("waiting is %q, want %q", got, want)
	}
}

func redisZ(score float64, id string) redis.Z { return redis.Z{Score: score, Member: id} }

func ids(claims []*Claim) string {
	var out []string
	for _, c := range claims {
		out = append(out, c.ID)
	}
	return strings.Join(out, " ")
}

// keysOf lists every key of the queue that there can be.
var queueKeys = []string{"jobs", "tries", "waiting", "delayed", "active", "holders", "senders", "dead", "completed", "cancelled",
	"unique", "cancels", "fired", "meta", "minutes", "wake", "poke", "log"}

var clusterKeys = []string{"sessions", "condemned", "nodes", "sweeper", "epoch", "queues", "schedules", "format", "gossip", "meta", "log"}

// snapshot is the content of all keys, as text.
func (s *space) snapshot() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, k := range queueKeys {
		out[k] = s.dump(s.key(k))
	}
	for _, k := range clusterKeys {
		out["cluster "+k] = s.dump(s.c.keys.whole(k))
	}
	return out
}

func (s *space) dump(key string) string {
	s.t.Helper()
	kind, err := s.rdb.Type(s.ctx, key).Result()
	s.ok(err)
	var v any
	switch kind {
	case "hash":
		m, e := s.rdb.HGetAll(s.ctx, key).Result()
		var lines []string
		for _, k := range slices.Sorted(maps.Keys(m)) {
			lines = append(lines, fmt.Sprintf("%q=%q", k, m[k]))
		}
		v, err = lines, e
	case "zset":
		v, err = s.rdb.ZRangeWithScores(s.ctx, key, 0, -1).Result()
	case "set":
		l, e := s.rdb.SMembers(s.ctx, key).Result()
		sort.Strings(l)
		v, err = l, e
	case "list":
		v, err = s.rdb.LRange(s.ctx, key, 0, -1).Result()
	case "string":
		v, err = s.rdb.Get(s.ctx, key).Result()
	}
	s.ok(err)
	return fmt.Sprint(kind, " ", v)
}

// unchanged fails for each key that is not what it was.
func (s *space) unchanged(before map[string]string) {
	s.t.Helper()
	for k, now := range s.snapshot() {
		if now != before[k] {
			s.t.Errorf("%s changed\nfrom %s\nto   %s", k, before[k], now)
		}
	}
}

// conserved checks that every id is in exactly one place, with a body, and
// returns how many there are.
func (s *space) conserved() int {
	s.t.Helper()
	at := map[string][]string{}
	for _, p := range places {
		l, err := s.rdb.ZRange(s.ctx, s.key(p), 0, -1).Result()
		s.ok(err)
		for _, id := range l {
			at[id] = append(at[id], p)
		}
	}
	l, err := s.rdb.HKeys(s.ctx, s.key("active")).Result()
	s.ok(err)
	for _, id := range l {
		at[id] = append(at[id], "active")
	}
	bodies, err := s.rdb.HKeys(s.ctx, s.key("jobs")).Result()
	s.ok(err)
	for _, id := range bodies {
		if len(at[id]) != 1 {
			s.t.Errorf("job %s is in %d places: %v", id, len(at[id]), at[id])
		}
		delete(at, id)
	}
	for id, p := range at {
		s.t.Errorf("%s in %v has no body", id, p)
	}
	return len(bodies)
}
