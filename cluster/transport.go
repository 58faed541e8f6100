package cluster

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/hashicorp/memberlist"
)

// portTries bounds the search for a port that is free for TCP and UDP both.
const portTries = 10

// bind opens the sockets. A port that was named must be free; without one the
// default port is tried first, then any.
func bind(at endpoint, logger *log.Logger) (*memberlist.NetTransport, error) {
	ports := []int{int(at.port)}
	if !at.given {
		ports = []int{DefaultPort}
	}
	if !at.given || at.port == 0 {
		ports = append(ports, make([]int, portTries)...) // 0: the kernel chooses
	}
	var first error
	for _, port := range ports {
		t, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{at.ip.String()}, BindPort: port, Logger: logger,
		})
		if err == nil {
			return t, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, fmt.Errorf("gossip cannot listen on %s: %w", at.ip, first)
}

// wire is the network as memberlist sees it. Connections that it opened end
// with life, so that a join into a black hole does not hold up the stop.
type wire struct {
	memberlist.NodeAwareTransport
	life context.Context
}

func (w *wire) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return w.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

func (w *wire) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(w.life, "tcp", a.Addr)
	if err != nil {
		return nil, err
	}
	return &tiedConn{Conn: conn, untie: context.AfterFunc(w.life, func() { _ = conn.Close() })}, nil
}

type tiedConn struct {
	net.Conn
	untie func() bool
}

func (t *tiedConn) Close() error {
	t.untie()
	return t.Conn.Close()
}

// abandon closes a transport that nobody reads: its listeners block on their
// channels, and Shutdown waits for them.
func abandon(t memberlist.Transport) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = t.Shutdown()
	}()
	for {
		select {
		case <-done:
			return
		case conn := <-t.StreamCh():
			_ = conn.Close()
		case <-t.PacketCh():
		}
	}
}
