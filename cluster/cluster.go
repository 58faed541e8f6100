package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/rs/zerolog"
)

const (
	leaveLimit  = 500 * time.Millisecond // for the word to go out
	updateLimit = 500 * time.Millisecond // for new metadata to go out
	updateAgain = time.Second            // later, with jitter, it goes out once more
)

// Cluster is this node's part in gossip. All methods may be called at any time,
// from any goroutine except memberlist's callbacks, which are private.
type Cluster struct {
	cfg    checked
	name   string // in gossip
	log    zerolog.Logger
	bridge *logBridge
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	roster  *roster
	met     *acquaintances
	inbox   *inbox
	clashed map[string]bool // node names warned of; only rejoin uses it

	meta   atomic.Pointer[Meta]
	update chan struct{} // one slot: meta changed

	started atomic.Bool
	ready   chan struct{}
	addr    string // set before ready is closed

	running sync.RWMutex           // read: memberlist may be used
	list    *memberlist.Memberlist // nil before open and from Shutdown on
}

// New checks the Config, with all its faults in one error (*ConfigError). It
// does no I/O and starts nothing.
func New(cfg Config) (*Cluster, error) {
	ok, err := cfg.check()
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		cfg:     ok,
		name:    cfg.Name + "-" + strings.ToLower(rand.Text()[:10]), // 50 random bits
		log:     cfg.Log.With().Str("component", "gossip").Logger(),
		lookup:  net.DefaultResolver.LookupNetIP,
		roster:  newRoster(),
		met:     newAcquaintances(),
		inbox:   &inbox{more: make(chan struct{}, 1)},
		clashed: map[string]bool{},
		update:  make(chan struct{}, 1),
		ready:   make(chan struct{}),
	}
	c.bridge = newLogBridge(c.log)
	c.meta.Store(&cfg.Meta)
	return c, nil
}

// Run takes part in gossip until ctx ends, then leaves, which takes a second at
// most. It returns an error only if the sockets cannot be bound or when it is
// called twice. A Cluster runs once.
func (c *Cluster) Run(ctx context.Context) error {
	if !c.started.CompareAndSwap(false, true) {
		return errors.New("gossip: Run was called twice")
	}
	list, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.running.Lock()
	c.list = list
	c.running.Unlock()
	close(c.ready)

	var loops sync.WaitGroup
	loops.Go(func() { c.announce(ctx, list) })
	loops.Go(func() { c.rejoin(ctx, list) })
	loops.Go(func() { c.deliver(ctx) })
	for range meetersRun {
		loops.Go(func() { c.meet(ctx) })
	}
	<-ctx.Done()
	c.leave(list)
	loops.Wait()
	return nil
}

// open binds the sockets and creates the memberlist on them.
func (c *Cluster) open(ctx context.Context) (*memberlist.Memberlist, error) {
	conf := c.cfg.tune.apply()
	conf.Logger = c.bridge.logger()
	sockets, err := bind(c.cfg.bind, conf.Logger)
	if err != nil {
		return nil, err
	}
	bound := endpoint{ip: c.cfg.bind.ip, port: uint16(sockets.GetAutoBindPort())}
	public, why := advertised(ctx, c.cfg, bound)
	conf.Name, conf.Label = c.name, c.cfg.Label
	conf.BindAddr, conf.BindPort = bound.ip.String(), int(bound.port)
	conf.AdvertiseAddr, conf.AdvertisePort = public.ip.String(), int(public.port)
	conf.Delegate, conf.Events = delegate{c}, delegate{c}
	conf.Transport = &wire{NodeAwareTransport: sockets, life: ctx}
	if c.cfg.Wrap != nil {
		conf.Transport = c.cfg.Wrap(conf.Transport.(memberlist.NodeAwareTransport))
	}
	if c.cfg.Key != nil {
		keys := append([][]byte{c.cfg.Key}, c.cfg.AcceptKeys...)
		if conf.Keyring, err = memberlist.NewKeyring(keys, c.cfg.Key); err != nil {
			abandon(sockets)
			return nil, fmt.Errorf("gossip key: %w", err)
		}
	}
	list, err := memberlist.Create(conf)
	if err != nil {
		abandon(sockets) // some of its error paths leave the listeners open
		return nil, fmt.Errorf("gossip cannot start: %w", err)
	}
	c.addr = net.JoinHostPort(public.ip.String(), strconv.Itoa(int(public.port)))
	c.log.Info().Str("name", c.name).Str("bound", net.JoinHostPort(bound.ip.String(), strconv.Itoa(int(bound.port)))).
		Str("advertised", c.addr).Str("why", why).Bool("encrypted", c.cfg.Key != nil).Msg("gossip runs")
	return list, nil
}

// leave says goodbye and closes the sockets. Leave comes before Shutdown, never
// after: memberlist would panic.
func (c *Cluster) leave(list *memberlist.Memberlist) {
	c.bridge.quiet()
	c.sayGoodbye()
	if err := list.Leave(leaveLimit); err != nil {
		c.log.Debug().Err(err).Msg("leaving was not confirmed")
	}
	c.sayGoodbye() // datagrams get lost
	c.running.Lock()
	c.list = nil
	c.running.Unlock()
	c.roster.close()
	if err := list.Shutdown(); err != nil {
		c.log.Debug().Err(err).Msg("closing gossip")
	}
}

// announce sends new metadata out until ctx ends, each one twice and until it
// is confirmed. Once is not enough: a burst of lost datagrams would hide it
// until the next exchange of states; memberlist drops it when it refutes a
// suspicion at that very moment; and its queue (v0.7.0) counts ids from 1 again
// whenever it is empty, so that of two messages of equal length one may replace
// the other unsent. The jitter keeps nodes from colliding again.
func (c *Cluster) announce(ctx context.Context, list *memberlist.Memberlist) {
	var again <-chan time.Time
	for {
		next := false
		select {
		case <-ctx.Done():
			return
		case <-c.update:
			next = true
		case <-again:
		}
		again = nil
		if err := list.UpdateNode(updateLimit); err != nil {
			c.log.Debug().Err(err).Msg("new metadata was not confirmed in time")
			next = true
		}
		if next {
			again = time.After(updateAgain/2 + mathrand.N(updateAgain))
		}
	}
}

// Update replaces the metadata. It returns at once; the others hear of it soon.
// A session that is too long or not printable is left out.
func (c *Cluster) Update(m Meta) {
	c.meta.Store(&m)
	select {
	case c.update <- struct{}{}:
	default:
	}
}

// Ready is closed once the sockets are bound and Addr is known.
func (c *Cluster) Ready() <-chan struct{} { return c.ready }

// Name is this node's name in gossip, "<node name>-<boot suffix>".
func (c *Cluster) Name() string { return c.name }

// Addr is the advertised "IP:port", "" until Ready is closed.
func (c *Cluster) Addr() string {
	select {
	case <-c.ready:
		return c.addr
	default:
		return ""
	}
}

// Members returns the members known, this one and those dead or left of late
// included, ordered by name. The slice is the caller's.
func (c *Cluster) Members() []Member { return c.roster.list() }

// Events yields after changes of Members, at least once after the last one. It
// is for one reader and is never closed.
func (c *Cluster) Events() <-chan struct{} { return c.roster.changed }

// Dead says that gossip gave the session's member up. False for who left, and
// for who is unknown. It is a hint, never a proof.
func (c *Cluster) Dead(session string) bool { return c.roster.dead(session) }

// Health is memberlist's doubt in this node itself: 0 is well, more means that
// it starves or that its network loses packets. -1 when gossip does not run.
func (c *Cluster) Health() int {
	c.running.RLock()
	defer c.running.RUnlock()
	if c.list == nil {
		return -1
	}
	return c.list.GetHealthScore()
}
