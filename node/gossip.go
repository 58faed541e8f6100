package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/kelpiehq/kelpie/cluster"
	"github.com/kelpiehq/kelpie/cluster/faulty"
	"github.com/kelpiehq/kelpie/queue"
	"github.com/kelpiehq/kelpie/sweeper"
)

// lockFree is the direct message of a sweeper that steps down.
const lockFree = "sweeper lock is free"

// newGossip builds the cluster side; nil when gossip is off.
func (n *Node) newGossip(ctx context.Context) (*cluster.Cluster, error) {
	if n.cfg.Gossip == gossipOff {
		return nil, nil
	}
	bind, err := n.bindAddress(ctx)
	if err != nil {
		return nil, err
	}
	key, err := n.gossipKey(ctx)
	if err != nil {
		return nil, err
	}
	cfg := cluster.Config{
		Name: n.cfg.Name, Label: n.cfg.Prefix, Bind: bind, Preset: cluster.Preset(n.cfg.Preset),
		Seeds: n.cfg.Join, Peers: n.peers, Key: key, Log: n.log,
		Meta:      cluster.Meta{Version: n.cfg.Version, HTTP: n.httpAddr(), RedisOK: true},
		OnMessage: n.onMessage,
	}
	if n.cfg.Links != "" {
		rules, err := faulty.Open(n.cfg.Links, n.cfg.Name, n.log)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		cfg.Wrap, cfg.Dial = rules.Wrap, rules.Dial
	}
	if n.cfg.cluster != nil {
		n.cfg.cluster(&cfg)
	}
	c, err := cluster.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c, nil
}

// bindAddress is what the caller said, its name resolved, or the local end of
// the connection to Redis.
func (n *Node) bindAddress(ctx context.Context) (string, error) {
	if n.cfg.Gossip == "" {
		network, addr := n.redis.address()
		ip, err := cluster.LocalAddr(ctx, network, addr)
		if err != nil {
			return "", fmt.Errorf("%w: gossip: no own address found towards Redis at %s: %w; name one with the gossip option", ErrConfig, addr, err)
		}
		return ip, nil
	}
	host, port, err := net.SplitHostPort(n.cfg.Gossip)
	if err != nil {
		return "", fmt.Errorf("%w: gossip %q: must be HOST:PORT or off", ErrConfig, n.cfg.Gossip)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if net.ParseIP(host) == nil {
		ips, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil || len(ips) == 0 {
			return "", fmt.Errorf("%w: gossip host %q: not an address and not resolvable", ErrConfig, host)
		}
		host = ips[0]
	}
	return net.JoinHostPort(host, port), nil
}

// gossipKey waits for the key that all nodes share.
func (n *Node) gossipKey(ctx context.Context) ([]byte, error) {
	offered := cluster.NewKey()
	for try := 0; ; try++ {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		key, err := n.redis.control.GossipKey(call, offered)
		cancel()
		if err == nil {
			n.key = key
			return key, nil
		}
		if permanent(err) {
			return nil, err
		}
		n.redis.failed(err)
		if !sleep(ctx, backoff(try)) {
			return nil, errStopped
		}
	}
}

// peers are the gossip addresses that live nodes keep in Redis.
func (n *Node) peers(ctx context.Context) ([]string, error) {
	nodes, err := n.redis.data.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var addrs []string
	for _, other := range nodes {
		if other.Gossip != "" && other.HeartbeatAge < n.cfg.Lease {
			addrs = append(addrs, other.Gossip)
		}
	}
	return addrs, nil
}

func (n *Node) onMessage(_ string, msg []byte) {
	if in := n.current.Load(); in != nil && string(msg) == lockFree {
		in.lock.Nudge()
	}
}

// tellLockFree tells two members that the lock can be had.
func (n *Node) tellLockFree() {
	told := 0
	for _, m := range n.alive() {
		if m.Meta.Draining || told == 2 {
			continue
		}
		if err := n.gossip.Send(m.Name, []byte(lockFree)); err == nil {
			told++
		}
	}
}

// alive lists the other members that gossip sees.
func (n *Node) alive() (others []cluster.Member) {
	if n.gossip == nil {
		return nil
	}
	for _, m := range n.gossip.Members() {
		if m.State == cluster.Alive && m.Name != n.gossip.Name() {
			others = append(others, m)
		}
	}
	return others
}

// members names the members that gossip sees, this node included.
func (n *Node) members() []string {
	names := []string{}
	if n.gossip == nil {
		return names
	}
	for _, m := range n.gossip.Members() {
		if m.State == cluster.Alive {
			names = append(names, or(m.Node, m.Name))
		}
	}
	return names
}

func (n *Node) gossipSessions() (sessions []string) {
	for _, m := range n.alive() {
		if m.Meta.Session != "" {
			sessions = append(sessions, m.Meta.Session)
		}
	}
	return sessions
}

func (n *Node) gossipAddr() string {
	if n.gossip == nil {
		return ""
	}
	return n.gossip.Addr()
}

// peersLostRedis reports that there are peers and none of them reaches Redis:
// nobody can condemn this session then.
func (n *Node) peersLostRedis() bool {
	others := n.alive()
	for _, m := range others {
		if m.Meta.RedisOK {
			return false
		}
	}
	return len(others) > 0
}

// tell changes what gossip says of this node.
func (n *Node) tell(change func(*cluster.Meta)) {
	n.metaMu.Lock()
	defer n.metaMu.Unlock()
	old := n.meta
	change(&n.meta)
	if n.gossip != nil && n.meta != old {
		n.gossip.Update(n.meta)
	}
}

func (n *Node) tellRedis(ok bool) { n.tell(func(m *cluster.Meta) { m.RedisOK = ok }) }
func (n *Node) tellDraining()     { n.tell(func(m *cluster.Meta) { m.Draining = true }) }

// meet connects once to every member whose session is new, so that it can be a
// witness later.
func (n *Node) meet() {
	for _, m := range n.alive() {
		if m.Meta.Session != "" {
			n.gossip.Meet(m.Meta.Session, m.Addr)
		}
	}
}

// witness judges silent sessions for one incarnation.
type witness struct {
	n  *Node
	in *incarnation
}

func (n *Node) witness(in *incarnation) sweeper.Witness {
	if n.cfg.witness != nil {
		return n.cfg.witness
	}
	return witness{n, in}
}

// Testify reports evidence, besides silence, that a session's process is gone:
// its gossip address refuses, or does not answer while gossip calls it dead;
// and this node reaches some other session whose beat is fresh, if there is one.
// That its address is another one's now is evidence as well.
func (w witness) Testify(ctx context.Context, session string) bool {
	if w.n.gossip == nil {
		return false
	}
	members := w.n.gossip.Members()
	addrs := map[string]string{}
	for _, m := range members {
		if m.Meta.Session != "" {
			addrs[m.Meta.Session] = m.Addr
		}
	}
	addr := addrs[session]
	if addr == "" {
		return false
	}
	if w.succeeded(session, addr, members) {
		return true
	}
	return w.reachesOthers(ctx, session, addrs) && w.n.gossip.Witness(ctx, session, addr).Enough(w.n.gossip.Dead(session))
}

// succeeded reports whether a session that beats in Redis has the address in
// gossip that the silent one had: a process that was restarted at once, on the
// same port. Its listener accepts, and only one process can have it.
func (w witness) succeeded(session, addr string, members []cluster.Member) bool {
	return slices.ContainsFunc(members, func(m cluster.Member) bool {
		other := m.Meta.Session
		return m.Addr == addr && other != "" && other != session && m.State == cluster.Alive &&
			(other == w.in.session || w.in.watch.Fresh(other, time.Now()))
	})
}

// reachesOthers is the control. Who beats is known from Redis, not from gossip:
// an isolated node takes everybody for dead.
func (w witness) reachesOthers(ctx context.Context, session string, addrs map[string]string) bool {
	fresh, tried := 0, 0
	for _, other := range w.in.watch.Sessions() {
		if other == session || other == w.in.session || !w.in.watch.Fresh(other, time.Now()) {
			continue
		}
		fresh++
		if addrs[other] == "" || tried == 3 {
			continue
		}
		if tried++; w.n.gossip.Reaches(ctx, addrs[other]) {
			return true
		}
	}
	return fresh == 0
}

// restore puts back what every node keeps in Redis: the registry of its queues
// and the gossip key.
func (n *Node) restore(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	names := make([]string, len(n.cfg.Queues))
	for i, q := range n.cfg.Queues {
		names[i] = q.Name
	}
	err := n.redis.data.Register(ctx, names...)
	if err == nil && n.key != nil {
		_, err = n.redis.control.GossipKey(ctx, n.key)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		n.redis.failed(err)
	}
}

// condemnPredecessor declares the session dead that the lock file proves gone.
func (n *Node) condemnPredecessor(ctx context.Context) {
	prev := n.state.predecessor()
	for try := 0; prev != "" && try < 10; try++ {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		beat, there, err := n.redis.control.LastBeat(call, prev)
		var verdict queue.Condemned
		if err == nil && there {
			verdict, err = n.redis.control.Condemn(call, prev, beat)
		}
		cancel()
		switch {
		case err == nil && !there, verdict == queue.Absent:
			return
		case err != nil:
			n.redis.failed(err)
		case verdict == queue.Done:
			n.log.Info().Str("predecessor", prev).Msg("the last process of this state directory is gone: its jobs are free at once")
			return
		}
		if !sleep(ctx, backoff(try)) {
			return
		}
	}
}
