package cluster

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFaultsOfAConfig(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg  Config
		want string // the fields at fault
	}{
		"a name is enough":                              {Config{Name: "n1"}, ""},
		"all faults come at once":                       {Config{Bind: "localhost", Advertise: "host:1", Seeds: []string{"a:b"}, Preset: "slow", Key: []byte("short"), Label: "a b", Meta: Meta{Session: "\n"}}, "name label session preset key bind advertise seed"},
		"a host name to bind is no wildcard in silence": {Config{Name: "n", Bind: "myhost:7946"}, "bind"},
		"a bind without a host":                         {Config{Name: "n", Bind: ":7946"}, "bind"},
		"an IPv6 address with a port":                   {Config{Name: "n", Bind: "[::1]:0"}, ""},
		"an IPv6 address without":                       {Config{Name: "n", Bind: "::1"}, ""},
		"an address with a zone":                        {Config{Name: "n", Bind: "fe80::1%eth0"}, "bind"},
		"an address with a zone and a port":             {Config{Name: "n", Bind: "[fe80::1%eth0]:1"}, "bind"},
		"advertising everything is nothing":             {Config{Name: "n", Bind: "0.0.0.0", Advertise: "0.0.0.0:7946"}, "advertise"},
		"a name with a slash":                           {Config{Name: "a/b"}, "name"},
		"a name that is too long":                       {Config{Name: strings.Repeat("n", 256)}, "name"},
		"a name of greatest length":                     {Config{Name: strings.Repeat("n", 255)}, ""},
		"seeds with and without port":                   {Config{Name: "n", Seeds: []string{"localhost", "127.0.0.1:1", "[::1]:2", "::1", "a.b.c:65535"}}, ""},
		"seeds that are none":                           {Config{Name: "n", Seeds: []string{"", ":1", "h:0", "h:65536", "a/b:1", "[::1]", "1:2:3:x"}}, "seed seed seed seed seed seed seed"},
		"loopback with a seed elsewhere":                {Config{Name: "n", Seeds: []string{"10.0.0.2:7946"}}, "bind"},
		"loopback that advertises another address":      {Config{Name: "n", Advertise: "10.0.0.1", Seeds: []string{"10.0.0.2:7946"}}, ""},
		"further keys without a first":                  {Config{Name: "n", AcceptKeys: [][]byte{NewKey()}}, "key"},
		"a further key of wrong length":                 {Config{Name: "n", Key: NewKey(), AcceptKeys: [][]byte{{1}}}, "key"},
		"a label that is too long":                      {Config{Name: "n", Label: strings.Repeat("l", 256)}, "label"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tt.cfg)
			var fields []string
			var faults *ConfigError
			if errors.As(err, &faults) {
				for _, f := range faults.Faults {
					fields = append(fields, f.Field)
					if f.Rule == "" || !strings.Contains(err.Error(), f.String()) {
						t.Errorf("the message hides %+v: %v", f, err)
					}
				}
			} else if err != nil {
				t.Fatalf("not a ConfigError: %v", err)
			}
			if got := strings.Join(fields, " "); got != tt.want {
				t.Errorf("faults %q, want %q (%v)", got, tt.want, err)
			}
		})
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	ip := netip.MustParseAddr("127.0.0.1")
	logger := newLogBridge(journalNone()).logger()

	if l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), strconv.Itoa(DefaultPort))); err == nil {
		defer l.Close() // else somebody has it already
	}
	free, err := bind(endpoint{ip: ip}, logger)
	if err != nil {
		t.Fatalf("the default port is taken, and no other is used: %v", err)
	}
	defer abandon(free)
	if free.GetAutoBindPort() == DefaultPort {
		t.Error("the default port was taken")
	}
	taken := uint16(free.GetAutoBindPort())
	if again, err := bind(endpoint{ip: ip, port: taken, given: true}, logger); err == nil {
		abandon(again)
		t.Error("a port that was named and is taken was replaced in silence")
	} else if !strings.Contains(err.Error(), strconv.Itoa(int(taken))) {
		t.Errorf("the error does not name the port: %v", err)
	}

	c, err := New(Config{Name: "n", Bind: netip.AddrPortFrom(ip, taken).String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err == nil {
		t.Error("Run did not fail")
	}
}

func TestLocalAddr(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ network, addr, want string }{
		"Redis on loopback":           {"tcp", "127.0.0.1:6379", "127.0.0.1"},
		"Redis behind a unix socket":  {"unix", "/run/redis.sock", "127.0.0.1"},
		"a Redis that cannot be":      {"tcp", "no port", ""},
		"Redis on another loopback":   {"tcp", "127.0.0.2:6379", "127.0.0.1"},
		"Redis on the wildcard":       {"tcp", "0.0.0.0:6379", "127.0.0.1"},
		"Redis on loopback, port off": {"tcp", "127.0.0.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := LocalAddr(t.Context(), tt.network, tt.addr)
			if ip := net.ParseIP(got); tt.want != "" && (ip == nil || !ip.IsLoopback()) || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestAdvertised(t *testing.T) {
	t.Parallel()
	peers := func(context.Context) ([]string, error) { return []string{"127.0.0.1:7"}, nil }
	for name, tt := range map[string]struct {
		cfg  Config
		want string // "" is any address that is not the wildcard
	}{
		"the bound address":                   {Config{Bind: "127.0.0.1"}, "127.0.0.1:55"},
		"what was given, with the bound port": {Config{Bind: "0.0.0.0", Advertise: "10.0.0.1"}, "10.0.0.1:55"},
		"what was given":                      {Config{Bind: "0.0.0.0", Advertise: "10.0.0.1:77"}, "10.0.0.1:77"},
		"the way to the first seed":           {Config{Bind: "0.0.0.0", Seeds: []string{"127.0.0.1:1"}}, "127.0.0.1:55"},
		"the way to a peer":                   {Config{Bind: "::", Peers: peers}, "127.0.0.1:55"},
		"else some way, never the wildcard":   {Config{Bind: "::"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Name = "n"
			cfg, err := tt.cfg.check()
			if err != nil {
				t.Fatal(err)
			}
			at, why := advertised(t.Context(), cfg, endpoint{ip: cfg.bind.ip, port: 55})
			if got := netip.AddrPortFrom(at.ip, at.port).String(); tt.want != "" && got != tt.want || at.ip.IsUnspecified() || why == "" {
				t.Errorf("got %s (%s), want %s", got, why, tt.want)
			}
		})
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		alone  int
		random float64
		want   time.Duration
	}{
		"a member waits the whole time":          {0, 0.5, 15 * time.Second},
		"a lonely node tries again soon":         {1, 0.5, 250 * time.Millisecond},
		"and then less and less often":           {3, 0.5, time.Second},
		"down to the usual rate":                 {7, 0.5, 15 * time.Second},
		"at the usual rate for ever":             {1 << 40, 0.5, 15 * time.Second},
		"the jitter takes 15 percent at most":    {0, 0, 12750 * time.Millisecond},
		"and adds no more than 15 percent to it": {0, 1, 17250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pause(15*time.Second, tt.alone, tt.random); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
