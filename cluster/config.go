package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hashicorp/memberlist"
	"github.com/rs/zerolog"
)

// DefaultPort is the gossip port (TCP and UDP) when Bind names none and it is
// free.
const DefaultPort = 7946

const (
	maxNodeName = 255
	maxSession  = 100
)

// Config says how a node takes part. Only Name is required.
type Config struct {
	Name      string // of the node, 1-255 printable ASCII without space or slash
	Label     string // members with another label are never met; default "kelpie"
	Bind      string // "IP", "IP:port" or "IP:0"; default 127.0.0.1. Without a port: 7946, or any free one if that is taken
	Advertise string // "IP" or "IP:port" that the others shall use; default the bound one, or by the route when Bind is a wildcard
	Preset    Preset // default Fast

	// Seeds are "host:port" or "host"; names are resolved anew in each round.
	Seeds []string
	// Peers returns the gossip addresses of nodes that are known otherwise. It
	// is called in each round, with a deadline; an error only costs that round.
	Peers func(ctx context.Context) ([]string, error)

	Key        []byte   // 16, 24 or 32 bytes; nil: no encryption
	AcceptKeys [][]byte // decrypt as well, for a change of keys

	Meta Meta // at the start; Update changes it
	Log  zerolog.Logger

	// OnMessage gets the direct messages of other members, one at a time, on a
	// goroutine of Run. The message is the callee's to keep.
	OnMessage func(from string, msg []byte)

	// Dial makes the connections of the witness; default a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Wrap puts something between memberlist and its sockets (faults in tests).
	Wrap func(memberlist.NodeAwareTransport) memberlist.NodeAwareTransport
}

// NewKey makes a random key of 32 bytes for Config.Key.
func NewKey() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails (crypto/rand)
	return key
}

// Fault is one thing wrong with a Config.
type Fault struct {
	Field, Value, Rule string
}

func (f Fault) String() string { return fmt.Sprintf("%s %q: %s", f.Field, f.Value, f.Rule) }

// ConfigError lists all faults of a Config.
type ConfigError struct {
	Faults []Fault
}

func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return "gossip: " + strings.Join(lines, "; ")
}

// checked is a Config with its defaults and its addresses read.
type checked struct {
	Config
	bind, advertise endpoint
	tune            tuning
}

// check fills in the defaults and returns all faults at once.
func (cfg Config) check() (checked, error) {
	cfg.Label = cmp.Or(cfg.Label, "kelpie")
	cfg.Bind = cmp.Or(cfg.Bind, "127.0.0.1")
	cfg.Preset = cmp.Or(cfg.Preset, Fast)
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	c := checked{Config: cfg}
	var faults []Fault
	fault := func(field, value, rule string) { faults = append(faults, Fault{field, value, rule}) }

	if n := len(cfg.Name); n < 1 || n > maxNodeName || !printable(cfg.Name) || strings.Contains(cfg.Name, "/") {
		fault("name", cfg.Name, "must be 1 to 255 printable ASCII characters without space or slash")
	}
	if len(cfg.Label) > memberlist.LabelMaxSize || !printable(cfg.Label) {
		fault("label", cfg.Label, "must be at most 255 printable ASCII characters without space")
	}
	if len(cfg.Meta.Session) > maxSession || !printable(cfg.Meta.Session) {
		fault("session", cfg.Meta.Session, "must be at most 100 printable ASCII characters without space")
	}
	var ok bool
	if c.tune, ok = presets[cfg.Preset]; !ok {
		fault("preset", string(cfg.Preset), "must be fast, lan or wan")
	}
	for i, key := range append([][]byte{cfg.Key}, cfg.AcceptKeys...) {
		if key != nil && memberlist.ValidateKey(key) != nil {
			fault("key", fmt.Sprintf("number %d, %d bytes", i+1, len(key)), "must have 16, 24 or 32 bytes")
		}
	}
	if cfg.Key == nil && len(cfg.AcceptKeys) > 0 {
		fault("key", "", "must be given when further keys are accepted")
	}
	c.checkAddresses(fault)
	if len(faults) > 0 {
		return checked{}, &ConfigError{Faults: faults}
	}
	return c, nil
}

func (c *checked) checkAddresses(fault func(field, value, rule string)) {
	const rule = "must be IP, IP:port or [IPv6]:port; names are not resolved here, 0.0.0.0 means all addresses"
	var bound, named bool
	if c.bind, bound = parseEndpoint(c.Bind); !bound {
		fault("bind", c.Bind, rule)
	}
	if c.Advertise != "" {
		if c.advertise, named = parseEndpoint(c.Advertise); !named || c.advertise.ip.IsUnspecified() {
			fault("advertise", c.Advertise, "must be IP, IP:port or [IPv6]:port of one address that the others reach")
			named = false
		}
	}
	ours := c.bind.ip
	if named {
		ours = c.advertise.ip
	}
	for _, seed := range c.Seeds {
		host, _, ok := splitSeed(seed)
		if !ok {
			fault("seed", seed, "must be host:port or host")
			continue
		}
		ip, err := netip.ParseAddr(host)
		if err == nil && ours.IsLoopback() && !ip.IsLoopback() && !ip.IsUnspecified() {
			fault("bind", ours.String(), "must not be a loopback address while seed "+seed+" is on another machine")
		}
	}
}

// endpoint is an IP address with a port, if one was given.
type endpoint struct {
	ip    netip.Addr
	port  uint16
	given bool // the port was named, be it 0
}

func parseEndpoint(s string) (endpoint, bool) {
	if ip, err := netip.ParseAddr(s); err == nil {
		return endpoint{ip: ip.Unmap()}, ip.Zone() == ""
	}
	ap, err := netip.ParseAddrPort(s)
	if err != nil || ap.Addr().Zone() != "" { // memberlist carries no zones
		return endpoint{}, false
	}
	return endpoint{ip: ap.Addr().Unmap(), port: ap.Port(), given: true}, true
}

// splitSeed reads "host:port" or "host", which may be a name or an IP.
func splitSeed(s string) (host string, port uint16, ok bool) {
	host, port = s, DefaultPort
	if _, err := netip.ParseAddr(s); err != nil && strings.Contains(s, ":") {
		h, p, err := net.SplitHostPort(s)
		n, numErr := strconv.ParseUint(p, 10, 16)
		if err != nil || numErr != nil || n == 0 {
			return "", 0, false
		}
		host, port = h, uint16(n)
	}
	good := host != "" && len(host) <= 253 && printable(host) && !strings.Contains(host, "/")
	return host, port, good
}

// printable says that s has only printable ASCII characters and no space.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
