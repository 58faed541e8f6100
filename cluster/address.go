package cluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// LocalAddr returns the IP address of this machine that a connection to addr
// has: for a Redis on this machine's loopback, or behind a unix socket, a
// loopback address. It asks the kernel for the route; no packet is sent to addr
// (a host name is looked up).
func LocalAddr(ctx context.Context, network, addr string) (string, error) {
	if network == "unix" {
		return "127.0.0.1", nil
	}
	ip, err := route(ctx, addr)
	if err != nil {
		return "", fmt.Errorf("which address leads to %s: %w", addr, err)
	}
	return ip.String(), nil
}

// route connects a UDP socket, which sends nothing and yet picks the source.
func route(ctx context.Context, addr string) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "udp", addr)
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	ap, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return netip.Addr{}, err
	}
	if ap.Addr().Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%s is a link-local address, which gossip cannot carry", ap.Addr())
	}
	return ap.Addr().Unmap(), nil
}

// somewhere are addresses for documentation: the way there is the default one.
var somewhere = []string{"192.0.2.1:9", "[2001:db8::1]:9"}

// advertised decides what the others shall use: what was given, else the bound
// address, else (bound to all) the way to the first seed or peer, or the default
// way, else loopback. The reason is for the log.
func advertised(ctx context.Context, cfg checked, bound endpoint) (at endpoint, why string) {
	at, why = bound, "bound to it"
	if cfg.advertise.ip.IsValid() {
		at.ip, why = cfg.advertise.ip, "configured"
		if cfg.advertise.port != 0 {
			at.port = cfg.advertise.port
		}
		return at, why
	}
	if !at.ip.IsUnspecified() {
		return at, why
	}
	for _, target := range append(targetsOf(ctx, cfg), somewhere...) {
		if ip, err := route(ctx, target); err == nil {
			at.ip = ip
			return at, "leads to " + target
		}
	}
	at.ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return at, "no route to anywhere; other machines need advertise to be set"
}

// targetsOf are a few addresses that this node wants to talk to.
func targetsOf(ctx context.Context, cfg checked) []string {
	var targets []string
	for _, seed := range cfg.Seeds {
		if host, port, ok := splitSeed(seed); ok {
			targets = append(targets, net.JoinHostPort(host, fmt.Sprint(port)))
		}
	}
	if cfg.Peers != nil {
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		peers, _ := cfg.Peers(ctx) // the rounds will report
		targets = append(targets, peers...)
	}
	return targets[:min(len(targets), 3)]
}
