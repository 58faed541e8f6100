package cluster

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	lookTimeout = 2 * time.Second // for Peers and for all names of a round
	joinersRun  = 3               // joins at a time
	roundLimit  = 6 * time.Second // no further join is begun in a round after that
	firstPause  = 250 * time.Millisecond
	clashAfter  = 15 * time.Second
)

// rejoin holds rounds until ctx ends.
func (c *Cluster) rejoin(ctx context.Context, list *memberlist.Memberlist) {
	together, warned, alone := false, false, 0
	for {
		tried := c.round(ctx, list)
		if ctx.Err() != nil {
			return
		}
		if others := c.roster.others(); others > 0 {
			if !together {
				c.log.Info().Int("members", others+1).Msg("joined")
			}
			together, warned, alone = true, false, 0
		} else {
			if tried > 0 && !warned {
				c.log.Warn().Int("tried", tried).Msg("no other member reached yet; the node works without, and goes on trying")
				warned = true
			}
			together = false
			alone++
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause(c.cfg.tune.rejoin, alone, rand.Float64())):
		}
	}
}

// pause is the time to the next round: every, or less after the first rounds in
// which the node stayed alone; spread by 15 % to both sides.
func pause(every time.Duration, alone int, random float64) time.Duration {
	d := every
	if alone > 0 && alone < 10 {
		d = min(every, firstPause<<(alone-1))
	}
	return d + time.Duration((random*2-1)*0.15*float64(d))
}

// round joins who should be a member and is none, and tidies up. It returns the
// number of joins tried.
func (c *Cluster) round(ctx context.Context, list *memberlist.Memberlist) int {
	c.roster.prune(time.Now())
	c.review(c.roster.list(), time.Now())
	targets := c.targets(ctx)
	begun := time.Now()
	var tried atomic.Int64
	each(targets, joinersRun, func(addr string) {
		if ctx.Err() != nil || time.Since(begun) > roundLimit || c.isMember(addr) {
			return // an earlier join of this round may have brought it
		}
		tried.Add(1)
		c.join(list, addr)
	})
	return int(tried.Load())
}

// review meets those members again whom the first attempt did not reach, and
// warns once of each node name that is borne twice.
func (c *Cluster) review(members []Member, now time.Time) {
	for _, m := range members {
		if m.State == Alive && !m.Self && m.Meta.Session != "" {
			c.Meet(m.Meta.Session, m.Addr)
		}
	}
	for _, node := range clashes(members, now, clashAfter) {
		if !c.clashed[node] {
			c.clashed[node] = true
			c.log.Warn().Str("node", node).Msg("two live members have this node name; gossip tells them apart, people may not")
		}
	}
}

// join exchanges states with addr. After a partition in which each side
// declared the other dead the first exchange only tells both of them so, and
// they raise their incarnation; the second one takes effect.
func (c *Cluster) join(list *memberlist.Memberlist, addr string) {
	for range 2 {
		if _, err := list.Join([]string{addr}); err != nil {
			c.log.Debug().Str("addr", addr).Err(err).Msg("join failed")
			return
		}
		if c.isMember(addr) {
			return
		}
	}
}

// isMember says that a living member, or this one, has the address.
func (c *Cluster) isMember(addr string) bool {
	for _, m := range c.roster.list() {
		if m.Addr == addr && (m.State == Alive || m.Self) {
			return true
		}
	}
	return false
}

// targets are the addresses of seeds, peers and lost members that are no
// members now, each once, in random order.
func (c *Cluster) targets(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	places := append([]string(nil), c.cfg.Seeds...)
	if c.cfg.Peers != nil {
		peers, err := c.cfg.Peers(ctx)
		if err != nil && ctx.Err() == nil {
			c.log.Debug().Err(err).Msg("the peers are not known in this round")
		}
		places = append(places, peers...)
	}
	for _, m := range c.roster.list() {
		if m.State == Dead {
			places = append(places, m.Addr)
		}
	}
	var mu sync.Mutex
	found := map[string]bool{}
	rand.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	each(places, joinersRun, func(place string) {
		addrs := c.resolve(ctx, place)
		mu.Lock()
		defer mu.Unlock()
		for _, addr := range addrs {
			found[addr] = true
		}
	})
	var out []string
	for addr := range found {
		if !c.isMember(addr) {
			out = append(out, addr)
		}
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// resolve turns "host:port" into "IP:port" for each address of the host, by
// asking DNS each time. What cannot be resolved now is left for the next round.
func (c *Cluster) resolve(ctx context.Context, place string) []string {
	host, port, ok := splitSeed(place)
	if !ok {
		return nil
	}
	ips := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		ips = append(ips, ip)
	} else if ips, err = c.lookup(ctx, "ip", host); err != nil {
		c.log.Debug().Str("host", host).Err(err).Msg("name not resolved in this round")
	}
	var out []string
	for _, ip := range ips {
		if ip.IsValid() && !ip.IsUnspecified() {
			out = append(out, net.JoinHostPort(ip.Unmap().String(), strconv.Itoa(int(port))))
		}
	}
	return out
}

// each calls f for all items, at most limit at a time, and waits for all.
func each(items []string, limit int, f func(string)) {
	slots := make(chan struct{}, limit)
	var all sync.WaitGroup
	for _, item := range items {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f(item)
		})
	}
	all.Wait()
}
