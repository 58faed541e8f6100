package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kelpiehq/kelpie/cluster"
	"github.com/kelpiehq/kelpie/node/api"
	"github.com/kelpiehq/kelpie/queue"
	"github.com/rs/zerolog"
)

var errStopped = errors.New("stopped before it had started")

// Node is one process of the herd. Handlers are added before Run.
type Node struct {
	cfg      Config
	log      zerolog.Logger
	handlers map[string]handler
	faults   []error
	since    time.Time

	pool     *pool
	redis    *redisSide
	state    *stateDir
	gossip   *cluster.Cluster // nil: off
	key      []byte           // of gossip
	metrics  *metrics
	http     *api.Server
	complain *complaints

	current   atomic.Pointer[incarnation]
	leftovers sync.WaitGroup // exchange loops of lost sessions

	metaMu sync.Mutex
	meta   cluster.Meta
}

// New checks the configuration, all of it at once. It does no I/O and starts no
// goroutine.
func New(c Config) (*Node, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c = c.filled()
	n := &Node{
		cfg: c, handlers: map[string]handler{}, complain: newComplaints(),
		log: c.Log.With().Str("node", c.Name).Logger(), pool: newPool(c.Workers, c.Strict, c.Queues),
		meta: cluster.Meta{Version: c.Version, RedisOK: true},
	}
	n.metrics = newMetrics(n)
	return n, nil
}

// Run joins the herd and works until ctx ends; then it drains and returns nil.
// It waits for a Redis that is not there yet. ErrConfig: something must be
// changed first. ErrAborted: Config.Abort cut the drain short. Another error
// after the end of ctx lists jobs that could not be handed back. Run is called
// once.
func (n *Node) Run(ctx context.Context) (err error) {
	if len(n.faults) > 0 {
		return fmt.Errorf("%w: %w", ErrConfig, errors.Join(n.faults...))
	}
	n.since = time.Now().UTC().Truncate(time.Millisecond)
	if n.state, err = openStateDir(n.cfg.StateDir); err != nil {
		return err
	}
	defer n.state.close()
	if n.redis, err = newRedisSide(n.cfg, n.log, n.complain); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	defer n.redis.close()
	stopHTTP, err := n.serveHTTP()
	if err != nil {
		return err
	}
	defer n.step("stop http", stopHTTP)
	if err := n.meetRedis(ctx); err != nil {
		return stopped(err)
	}
	leave, err := n.joinGossip(ctx)
	if err != nil {
		return stopped(err)
	}
	defer n.step("leave gossip", leave)
	n.condemnPredecessor(ctx)
	n.restore(ctx)
	return stopped(n.live(ctx))
}

// stopped turns the end of a start-up that was called off into a clean end.
func stopped(err error) error {
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// live has one incarnation after the other.
func (n *Node) live(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer n.awaitLeftovers(end)
	for {
		in, err := newIncarnation(n)
		if err != nil {
			return err
		}
		if err := in.run(ctx, life); err != nil || in.phase() != phaseGone {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// awaitLeftovers joins the exchange loops of lost sessions. Handlers that ignore
// their end are left behind after a while; end stops the loops that wait for them.
func (n *Node) awaitLeftovers(end func()) {
	defer end()
	done := make(chan struct{})
	go func() { n.leftovers.Wait(); close(done) }()
	timer := time.NewTimer(cancelGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		n.log.Warn().Msg("handlers of a lost session ignore their end; the node stops without them")
		end()
		<-done // bounded by the time-out of one call
	}
}

// meetRedis waits for Redis and says once what it found.
func (n *Node) meetRedis(ctx context.Context) error {
	s, err := n.redis.await(ctx)
	if err != nil {
		if errors.Is(err, queue.ErrCluster) || errors.Is(err, queue.ErrBadInput) || errors.Is(err, queue.ErrFormat) {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
		return err
	}
	n.log.Info().Str("redis", s.String()).Msg("Redis found")
	for _, w := range s.Warnings() {
		n.log.Warn().Msg(w)
	}
	switch {
	case s.TooOld():
		return fmt.Errorf("%w: Redis %s is too old, %s or newer is needed", ErrConfig, s.Version, queue.MinVersion)
	case s.Evicts() && !n.cfg.AllowEviction:
		return fmt.Errorf("%w: Redis has maxmemory-policy %s and throws jobs away when it is full; set noeviction, or allow it explicitly", ErrConfig, s.Eviction)
	}
	return nil
}

// joinGossip starts the cluster side and waits until its sockets are bound. The
// function it returns leaves.
func (n *Node) joinGossip(ctx context.Context) (leave func(), err error) {
	if n.gossip, err = n.newGossip(ctx); err != nil || n.gossip == nil {
		return func() {}, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- n.gossip.Run(running) }()
	leave = func() {
		stop()
		if err := <-ended; err != nil {
			n.log.Warn().Err(err).Msg("gossip ended")
		}
	}
	select {
	case <-n.gossip.Ready():
		n.log.Info().Str("address", n.gossip.Addr()).Msg("gossip listens")
		return leave, nil
	case err := <-ended:
		stop()
		return nil, fmt.Errorf("%w: gossip: %w", ErrConfig, err)
	}
}

// serveHTTP starts /livez, /readyz and /metrics.
func (n *Node) serveHTTP() (stop func(), err error) {
	if n.cfg.HTTP == "" {
		return func() {}, nil
	}
	n.http, err = api.Listen(n.cfg.HTTP, api.Source{Ready: n.ready, Metrics: n.metrics.registry})
	if err != nil {
		return nil, fmt.Errorf("%w: http: %w", ErrConfig, err)
	}
	n.log.Info().Str("address", n.http.Addr()).Msg("http listens")
	return n.http.Serve(func(err error) { n.log.Error().Err(err).Msg("http ended") }), nil
}

func (n *Node) httpAddr() string {
	if n.http == nil {
		return ""
	}
	return n.http.Addr()
}

// ready says why this node takes no jobs now, or nil.
func (n *Node) ready() error {
	in := n.current.Load()
	switch {
	case in == nil:
		return errors.New("not registered in Redis yet")
	case in.phase() != phaseLive:
		return errors.New("draining")
	case in.doubt.Load():
		return errors.New("no heartbeat was answered for long: another node may have taken over")
	}
	return n.redis.ready()
}

func (n *Node) setCurrent(in *incarnation) {
	n.current.Store(in)
	n.tell(func(m *cluster.Meta) { m.Session, m.HTTP = in.session, n.httpAddr() })
}

// step runs one named step of the end and logs how long it took.
func (n *Node) step(name string, f func()) {
	began := time.Now()
	f()
	n.log.Info().Str("step", name).Dur("took_ms", time.Since(began)).Msg("stopping")
}
