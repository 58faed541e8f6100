package fault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/fault/proxy"
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

// puppet beats in a real Redis, as the process of a node does.
type puppet struct {
	name  string
	space *queue.Client

	mu    sync.Mutex
	pid   int
	stop  context.CancelFunc
	ended chan struct{}
}

func (p *puppet) session() string { return fmt.Sprintf("%s-%d", p.name, p.PID()) }

func (p *puppet) Start(context.Context) error {
	p.mu.Lock()
	p.pid++
	ended := make(chan struct{})
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.ended = ended
	p.mu.Unlock()
	info, err := json.Marshal(queue.NodeInfo{Name: p.name, Session: p.session()})
	if err != nil {
		return err
	}
	go func() { // until Kill
		defer close(ended)
		for ctx.Err() == nil {
			_, _ = p.space.Beat(ctx, queue.Beat{Session: p.session(), Info: info}) // Redis may be away
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return nil
}

func (p *puppet) Kill() { p.stop(); <-p.Ended() }
func (p *puppet) Term() { p.stop() }
func (p *puppet) Stop() {}
func (p *puppet) Cont() {}

func (p *puppet) Name() string { return p.name }

func (p *puppet) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

func (p *puppet) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *puppet) Running() bool {
	select {
	case <-p.Ended():
		return false
	default:
		return true
	}
}

// stage is a world over a real Redis.
type stage struct {
	t     *testing.T
	farm  *farm // for its record
	world *fault.World
	rdb   *redis.Client
	space *queue.Client
	opts  queue.Options
	nodes []*puppet
}

func newStage(t *testing.T, s *redistest.Server, names ...string) *stage {
	t.Helper()
	st := &stage{t: t, farm: &farm{}, rdb: s.Client(t), opts: queue.Options{Prefix: redistest.Prefix(t), Patience: 5 * time.Second}}
	st.space = st.client(st.rdb)
	st.world = &fault.World{
		Ways: map[string]fault.Way{}, Space: st.space, Record: st.farm.record,
		Settings: history.Settings{Queues: []string{"orders", "mail"}, Heartbeat: 500 * time.Millisecond},
	}
	for _, name := range names {
		p := &puppet{name: name, space: st.space}
		st.ok(p.Start(t.Context()))
		t.Cleanup(p.Kill)
		st.nodes = append(st.nodes, p)
		st.world.Nodes = append(st.world.Nodes, p)
	}
	return st
}

func (st *stage) client(rdb *redis.Client) *queue.Client {
	st.t.Helper()
	c, err := queue.New(rdb, st.opts)
	st.ok(err)
	st.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (st *stage) ok(err error) {
	st.t.Helper()
	if err != nil {
		st.t.Fatal(err)
	}
}

func job(q string) queue.Request {
	return queue.Request{Kind: "k", JobOptions: queue.JobOptions{Queue: q}}
}

// claim has a node claim a job of a queue.
func (st *stage) claim(p *puppet, q string) (id string) {
	st.t.Helper()
	st.ok(st.space.Register(st.t.Context(), q))
	id, err := st.space.Enqueue(st.t.Context(), job(q))
	st.ok(err)
	session, err := st.space.Session(p.session())
	st.ok(err)
	x, err := session.Exchange(st.t.Context(), q, queue.Exchange{Want: 1})
	st.ok(err)
	if len(x.Claims) != 1 || x.Claims[0].ID != id {
		st.t.Fatalf("claims %+v, want %s", x.Claims, id)
	}
	return id
}

// through puts a proxy before the Redis and returns it.
func (st *stage) through() *proxy.Proxy {
	st.t.Helper()
	addr := st.rdb.Options().Addr
	p, err := proxy.Listen("127.0.0.1:0", func() string { return addr }, proxy.NewNames(queue.Scripts()))
	st.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	st.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			st.t.Error(err)
		}
	})
	return p
}

// dial returns a client of the space over a proxy.
func (st *stage) dial(p *proxy.Proxy) *queue.Client {
	o, err := queue.ParseURL("redis://" + p.Addr())
	st.ok(err)
	o.Password = st.rdb.Options().Password
	rdb := redis.NewClient(o)
	st.t.Cleanup(func() { _ = rdb.Close() })
	return st.client(rdb)
}

func TestAKillReadsFromRedisWhoHoldsWhat(t *testing.T) {
	t.Parallel()
	st := newStage(t, redistest.Shared(t), "n1", "n2")
	held := []string{"mail/" + st.claim(st.nodes[1], "mail"), "orders/" + st.claim(st.nodes[1], "orders")}
	st.ok(st.rdb.Set(t.Context(), st.space.SweeperKey(), strings.Repeat("x", 22)+"n2-1", 0).Err())
	st.ok(fault.Strike(t.Context(), st.world, history.Fault{N: 1, Kind: "kill", Aim: "holder"}))
	if got := st.farm.phases(); got != whole {
		t.Errorf("it recorded %q", got)
	}
	hit := st.farm.of(history.Hit)[0]
	if hit.Target != "n2" || hit.Session != "n2-1" || !slices.Equal(hit.Held, held) {
		t.Errorf("hit %+v, want n2-1 with %q", hit, held)
	}
	if p := st.nodes[1]; !p.Running() || p.PID() != 2 {
		t.Errorf("running %v with process %d: it was not restarted", p.Running(), p.PID())
	}
}

func TestALostReplyIsCounted(t *testing.T) {
	t.Parallel()
	st := newStage(t, redistest.Shared(t), "n1")
	p := st.through()
	st.world.Door = p
	producer := st.dial(p)
	st.ok(producer.Register(t.Context(), "mail"))
	over := make(chan struct{})
	st.farm.onLine = func(s history.Strike) {
		if s.Phase != history.Hit {
			return
		}
		go func() {
			defer close(over)
			for range 3 { // what comes of them is the client's affair
				_, _ = producer.Enqueue(t.Context(), job("mail"))
			}
		}()
	}
	st.ok(fault.Strike(t.Context(), st.world, history.Fault{Kind: "drop-reply", Aim: "producer", Script: "enqueue", Times: 2, For: 30 * time.Second}))
	<-over
	if end := st.farm.of(history.End)[0]; end.Count != 2 {
		t.Errorf("it ended with %+v, want 2 lost replies", end)
	}
}

// A shot that nothing meets waits some seconds for it, and is called off.
func TestAShotInTheAirEnds(t *testing.T) {
	t.Parallel()
	for kind := range map[string]bool{"drop-reply": true, "late-copy": true, "hold": true, "late": true, "lose": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			st := newStage(t, redistest.Shared(t), "n1")
			p := st.through()
			st.world.Ways["n1"] = p
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			st.farm.onLine = func(s history.Strike) {
				if s.Phase == history.Hit {
					cancel()
				}
			}
			st.ok(fault.Strike(ctx, st.world, history.Fault{Kind: kind, Script: "enqueue", Aim: "random", For: time.Hour}))
			if got := st.farm.phases(); got != whole {
				t.Errorf("it recorded %q", got)
			}
			st.farm.onLine = nil
			c := st.dial(p)
			st.ok(c.Register(t.Context(), "mail"))
			_, err := c.Enqueue(t.Context(), job("mail"))
			st.ok(err)
			if end := st.farm.of(history.End)[0]; end.Count != 0 {
				t.Errorf("it ended with %+v", end)
			}
		})
	}
}

func TestALateCopyTellsWhatRedisSaid(t *testing.T) {
	t.Parallel()
	st := newStage(t, redistest.Shared(t), "n1")
	p := st.through()
	st.world.Ways["n1"] = p
	c := st.dial(p)
	st.ok(c.Register(t.Context(), "mail"))
	session, err := c.Session("n1-1")
	st.ok(err)
	exchanged := make(chan error, 1)
	st.farm.onLine = func(s history.Strike) {
		if s.Phase == history.Hit {
			go func() {
				_, err := session.Exchange(t.Context(), "mail", queue.Exchange{Want: 1})
				exchanged <- err
			}()
		}
	}
	st.ok(fault.Strike(t.Context(), st.world, history.Fault{Kind: "late-copy", Aim: "random", Script: "exchange", Delay: 50 * time.Millisecond}))
	st.ok(<-exchanged)
	if end := st.farm.of(history.End)[0]; end.Count != 1 || end.Note != "Redis answered STALE" {
		t.Errorf("it ended with %+v, want one copy that was refused", end)
	}
}

// daemon is a server of the test's own in the part of World.Redis.
type daemon struct {
	store
	*redistest.Server
}

func (d daemon) Kill()                         { d.Server.Kill() }
func (d daemon) Restart(context.Context) error { d.Server.Restart(); return nil }
func (d daemon) Pause()                        { d.Server.Pause() }
func (d daemon) Resume()                       { d.Server.Resume() }

func TestHealthWaitsForARealRedisToComeBack(t *testing.T) {
	t.Parallel()
	s := redistest.Dedicated(t)
	st := newStage(t, s, "n1", "n2")
	st.world.Redis = daemon{Server: s}
	for n, kind := range []string{"redis-pause", "redis-kill"} {
		st.ok(fault.Strike(t.Context(), st.world, history.Fault{N: n + 1, Kind: kind, For: 300 * time.Millisecond}))
	}
	if got := st.farm.phases(); got != whole+" "+whole {
		t.Errorf("it recorded %q", got)
	}
	for _, s := range st.farm.of(history.Health) {
		if !s.OK {
			t.Errorf("health: %+v", s)
		}
	}
}
