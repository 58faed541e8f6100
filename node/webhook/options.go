package webhook

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/rs/zerolog"
)

// Options tunes a Handler. The zero value delivers unsigned, to public addresses.
type Options struct {
	Allow   []netip.Prefix // networks that may be delivered to although they are not public
	Secrets []string       // whsec_<base64>, one signature each; the newest first
	Version string         // in User-Agent: kelpie/<version>; default "devel"
	Log     zerolog.Logger // refused addresses are logged; default nothing

	ConnectTimeout time.Duration // of name look-up and TCP connect; default 10 s
	TLSTimeout     time.Duration // of the handshake; default 10 s
	HeaderTimeout  time.Duration // from the request sent to the answer's header; default the job's timeout_ms
	MaxRetryAfter  time.Duration // longest Retry-After that is honoured; default 24 h
	PerHost        int           // deliveries to one host:port at the same time; default 64

	RootCAs  *x509.CertPool // who may vouch for a receiver; default the system's
	Resolver *net.Resolver  // default the system's
}

// setDefaults fills in what was not given.
func (o *Options) setDefaults() {
	if o.Version == "" {
		o.Version = "devel"
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.ConnectTimeout, 10 * time.Second},
		{&o.TLSTimeout, 10 * time.Second},
		{&o.MaxRetryAfter, 24 * time.Hour},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.PerHost == 0 {
		o.PerHost = 64
	}
}

// check returns every rule that o breaks.
func (o *Options) check() error {
	var faults []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"connect timeout", o.ConnectTimeout},
		{"TLS timeout", o.TLSTimeout},
		{"header timeout", o.HeaderTimeout},
		{"longest retry-after", o.MaxRetryAfter},
	} {
		if d.value < 0 {
			faults = append(faults, fmt.Errorf("webhook %s %v: must not be negative", d.name, d.value))
		}
	}
	if o.PerHost < 0 {
		faults = append(faults, fmt.Errorf("webhook deliveries per host %d: must be at least 1", o.PerHost))
	}
	for i, network := range o.Allow {
		if !network.IsValid() {
			faults = append(faults, fmt.Errorf("webhook allowed network %d: is not a network", i+1))
		}
	}
	if !isToken("v" + o.Version) {
		faults = append(faults, fmt.Errorf("webhook version %q: must fit into a User-Agent header", o.Version))
	}
	return errors.Join(faults...)
}

// allowed returns the networks as they are compared: IPv4 ones written as IPv6
// become IPv4.
func (o *Options) allowed() []netip.Prefix {
	networks := make([]netip.Prefix, 0, len(o.Allow))
	for _, n := range o.Allow {
		if a := n.Addr(); a.Is4In6() && n.Bits() >= 96 {
			n = netip.PrefixFrom(a.Unmap(), n.Bits()-96)
		}
		networks = append(networks, n.Masked())
	}
	return networks
}
