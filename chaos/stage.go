package chaos

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/fault/herd"
	"github.com/kelpiehq/kelpie/chaos/fault/proxy"
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/chaos/watch"
	"github.com/kelpiehq/kelpie/queue"
)

// gathering is how long the nodes may take to see each other.
const gathering = 30 * time.Second

// stage is all that a run starts. Its fields are set in the order of the steps,
// before anything uses them.
type stage struct {
	*run
	kennel *process.Kennel
	prefix string
	store  store
	data   []string // folders of its own servers

	rdb, clock *redis.Client // past the proxies
	space      *queue.Client
	names      *proxy.Names
	ways       []*proxy.Proxy // by node; none: the nodes reach Redis without them
	door       *proxy.Proxy   // of the producers
	herd       *herd.Herd
	producers  []*producer
	strikes    *history.Writer
	world      *fault.World

	fail    context.CancelCauseFunc // ends the run: it cannot go on
	serving sync.WaitGroup          // the proxies
}

// perform does steps 1 to 7 of the package comment.
func (s *stage) perform(ctx context.Context) (err error) {
	ctx, s.fail = context.WithCancelCause(ctx)
	defer s.fail(nil)
	s.step("starting")
	if err := s.save(); err != nil {
		return err
	}
	s.kennel, err = process.Open(process.Options{Name: "kelpie-chaos", Dir: filepath.Join(s.Dir, "processes")})
	if err != nil {
		return err
	}
	defer func() {
		if cause := context.Cause(ctx); err == nil && cause != nil {
			err = cause
		}
		err = errors.Join(err, s.close())
	}()
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.play(ctx)
}

// open makes everything but the nodes and the producers.
func (s *stage) open(ctx context.Context) (err error) {
	s.prefix = "chaos-" + random(4)
	if err := s.openHerd(ctx); err != nil {
		return err
	}
	if err := s.openStore(ctx); err != nil {
		return err
	}
	if err := s.openWays(ctx); err != nil {
		return err
	}
	for _, q := range append([]string{watch.Whole}, s.plan.Settings.Queues...) {
		if err := s.space.KeepLog(ctx, q, true); err != nil {
			return err
		}
	}
	if s.Scenario.FencesAhead {
		if err := s.fencesAhead(ctx); err != nil {
			return err
		}
	}
	if s.strikes, err = history.Append(filepath.Join(s.Dir, history.FaultsFile)); err != nil {
		return err
	}
	s.openProducers()
	s.openWorld()
	return s.save()
}

// fencesAhead leaves every queue as a clock that was an hour ahead would.
func (s *stage) fencesAhead(ctx context.Context) error {
	now, err := s.rdb.Time(ctx).Result()
	if err != nil {
		return err
	}
	for _, q := range s.plan.Settings.Queues {
		if err := s.rdb.HSet(ctx, s.space.Key(q, "meta"), "fence", now.Add(time.Hour).UnixMicro()).Err(); err != nil {
			return err
		}
	}
	return nil
}

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// openHerd makes the network of the nodes, and the build for clocks that are
// off.
func (s *stage) openHerd(ctx context.Context) (err error) {
	skewed := s.Skewed
	if len(s.Scenario.Skew) > 0 && skewed == "" {
		s.tell("building a kelpie whose wall clock is off, which may take some minutes")
		if skewed, err = herd.Skewed(ctx, s.Dir); err != nil {
			return err
		}
	}
	s.herd, err = herd.New(herd.Spec{
		Kennel: s.kennel, Kelpie: s.Kelpie, Dir: s.Dir, Prefix: s.prefix, RedisURL: s.nodeURL,
		Settings: s.plan.Settings, Seed: s.plan.Seed, Netns: s.Netns, StateDirs: s.Scenario.StateDirs,
		Skew: s.Scenario.Skew, Skewed: skewed, Lost: s.lostNode,
	})
	if err != nil {
		return err
	}
	return s.herd.Open(ctx)
}

// nodeURL is the address of Redis for a node, from 0.
func (s *stage) nodeURL(n int) string {
	if len(s.ways) == 0 {
		return s.store.url
	}
	return s.store.through(s.ways[n].Addr())
}

// lostNode notes that a node ended that nobody had ended. The run goes on
// without it, and is not well.
func (s *stage) lostNode(name string, err error) {
	s.record(history.Strike{T: history.Now(), Phase: history.Health, Kind: "node", Target: name, Note: err.Error()})
}

// record writes a line of faults.jsonl.
func (s *stage) record(strike history.Strike) {
	if err := s.strikes.Write(strike); err != nil {
		s.fail(err)
	}
	s.struck(strike)
}

// openStore starts Redis, or asks somebody's own what it is.
func (s *stage) openStore(ctx context.Context) (err error) {
	if s.store, err = openStore(ctx, s); err != nil {
		return err
	}
	if s.rdb, err = queue.Connect(s.store.url); err != nil {
		return err
	}
	if s.clock, err = queue.Connect(s.store.url); err != nil {
		return err
	}
	if s.space, err = queue.New(s.rdb, queue.Options{Prefix: s.prefix}); err != nil {
		return err
	}
	server, err := s.space.Server(ctx)
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	s.plan.Redis, s.plan.Durable = server.Name(), s.store.durable(server)
	s.plan.Settings.Topology = s.store.topology
	if s.Netns {
		s.plan.Settings.Topology += "; a network namespace for each node"
	}
	s.tell("redis: %s, %s, %s; prefix %s", s.plan.Redis, s.plan.Durable, s.plan.Settings.Topology, s.prefix)
	return nil
}

// openWays puts a proxy before Redis for each node, and one for the producers,
// where the proxies understand what passes.
func (s *stage) openWays(ctx context.Context) error {
	if s.store.upstream == "" {
		return nil
	}
	s.names = proxy.NewNames(queue.Scripts())
	for range s.plan.Settings.Nodes {
		way, err := s.openWay(ctx)
		if err != nil {
			return err
		}
		s.ways = append(s.ways, way)
	}
	door, err := s.openWay(ctx)
	s.door = door
	return err
}

func (s *stage) openWay(ctx context.Context) (*proxy.Proxy, error) {
	way, err := proxy.Listen(net.JoinHostPort(s.herd.Host(), "0"), func() string { return s.store.upstream }, s.names)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // nodes use it until they have left
	ctx, stop := context.WithCancel(ctx)
	s.store.closers = append(s.store.closers, func() error { stop(); return nil })
	s.serving.Go(func() {
		if err := way.Run(ctx); err != nil {
			s.fail(fmt.Errorf("proxy: %w", err))
		}
	})
	return way, nil
}

// openWorld gathers what can be struck.
func (s *stage) openWorld() {
	w := &fault.World{
		Ways: map[string]fault.Way{}, Links: s.herd.Links(), Cables: map[string]fault.Cable{}, Redis: s.store.redis, Failover: s.store.failover,
		Space: s.space, Settings: s.plan.Settings, Record: s.record,
	}
	for i, n := range s.herd.Nodes() {
		w.Nodes = append(w.Nodes, n)
		if len(s.ways) > 0 {
			w.Ways[n.Name()] = s.ways[i]
		}
		if s.Netns {
			w.Cables[n.Name()] = n
		}
	}
	if s.door != nil {
		w.Door = s.door
	}
	for _, p := range s.producers {
		w.Producers = append(w.Producers, p)
	}
	s.world = w
}

// close ends everything in the reverse order. What was not opened needs nothing.
func (s *stage) close() error {
	s.step("stopping")
	var all error
	for _, p := range s.producers {
		p.retire()
	}
	if s.herd != nil {
		all = errors.Join(all, s.herd.Close())
	}
	all = errors.Join(all, s.kennel.Close())
	for i := len(s.store.closers) - 1; i >= 0; i-- {
		all = errors.Join(all, s.store.closers[i]())
	}
	s.serving.Wait()
	if s.space != nil {
		all = errors.Join(all, s.space.Close())
	}
	for _, rdb := range []*redis.Client{s.rdb, s.clock} {
		if rdb != nil {
			all = errors.Join(all, rdb.Close())
		}
	}
	if s.strikes != nil {
		all = errors.Join(all, s.strikes.Close())
	}
	return all
}
