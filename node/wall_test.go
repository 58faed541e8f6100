package node

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/kelpiehq/kelpie/cluster"
)

// wall stands between a node's gossip and the network, once it is up.
type wall struct{ up atomic.Bool }

// around makes a node's gossip ports unreachable while the wall is up, and its
// ways to the ports of others: datagrams and connections go nowhere, and the
// witness gets no answer.
func (w *wall) around(c *cluster.Config) {
	c.Wrap = func(inner memberlist.NodeAwareTransport) memberlist.NodeAwareTransport {
		return &walled{inner, w}
	}
	c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if w.up.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

type walled struct {
	memberlist.NodeAwareTransport
	wall *wall
}

func (t *walled) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

func (t *walled) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if t.wall.up.Load() {
		return time.Now(), nil
	}
	return t.NodeAwareTransport.WriteToAddress(b, a)
}

func (t *walled) DialTimeout(addr string, d time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, d)
}

func (t *walled) DialAddressTimeout(a memberlist.Address, d time.Duration) (net.Conn, error) {
	if t.wall.up.Load() {
		return nil, os.ErrDeadlineExceeded
	}
	return t.NodeAwareTransport.DialAddressTimeout(a, d)
}
