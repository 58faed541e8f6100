package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
)

// special are the networks in which no receiver is expected, by the registries
// of IANA and the habits of clouds. Among IPv6 addresses only 2000::/3 is public
// at all; what is special within it is listed too.
var special = []struct {
	net netip.Prefix
	is  string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's metadata service"}, // Azure, the only one on a public address
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "special-purpose"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "NAT64"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001::/23"), "special-purpose"},
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var publicIPv6 = netip.MustParsePrefix("2000::/3")

// guard dials only addresses that are public or allowed.
type guard struct {
	allow  []netip.Prefix
	dialer net.Dialer
}

// forbiddenError says that every address of a host was refused.
type forbiddenError struct {
	host string
	addr netip.Addr // the first of them
	is   string
}

func (e *forbiddenError) Error() string {
	if e.host == e.addr.String() {
		return fmt.Sprintf("address %s is %s and its network is not allowed", e.addr, e.is)
	}
	return fmt.Sprintf("host %q has the address %s, which is %s, and its network is not allowed", clip(e.host, 100), e.addr, e.is)
}

// judge returns what is wrong with addr, "" if nothing is.
func (g *guard) judge(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	for _, net := range g.allow {
		if net.Contains(addr) {
			return ""
		}
	}
	for _, s := range special {
		if s.net.Contains(addr) {
			return s.is
		}
	}
	if addr.Is6() && !publicIPv6.Contains(addr) {
		return "not a public one"
	}
	return ""
}

// dial is http.Transport's DialContext. The judgement falls in Control, which
// sees the address that the socket is about to connect to: nothing lies between
// it and the connection, least of all a second look-up of the name.
func (g *guard) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(host, "localhost.") { // the same for everybody but some resolvers
		hostport = strings.Replace(hostport, host, "localhost", 1)
	}
	if addr, err := netip.ParseAddr(host); err == nil { // also where this machine could not even open a socket for it
		if is := g.judge(addr); is != "" {
			return nil, &forbiddenError{host: host, addr: addr, is: is}
		}
	}
	var mu sync.Mutex // a dual-stack dial asks from two goroutines
	var first *forbiddenError
	passed := 0
	dialer := g.dialer
	dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("address %q cannot be judged: %w", address, err)
		}
		is := g.judge(at.Addr())
		mu.Lock()
		defer mu.Unlock()
		if is == "" {
			passed++
			return nil
		}
		refusal := &forbiddenError{host: host, addr: at.Addr(), is: is}
		if first == nil {
			first = refusal
		}
		return refusal
	}
	conn, err := dialer.DialContext(ctx, network, hostport)
	if err == nil {
		return conn, nil
	}
	mu.Lock()
	defer mu.Unlock()
	var refused *forbiddenError
	switch {
	case first != nil && passed == 0:
		return nil, first
	case errors.As(err, &refused): // but another address was tried too, and may answer next time
		return nil, fmt.Errorf("%s does not answer at the addresses that are allowed", clip(hostport, 100))
	}
	return nil, err
}
