package webhook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
)

func TestAddressIsJudged(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"8.8.8.8": "", "1.1.1.1": "", "100.63.255.255": "", "100.128.0.1": "", "172.15.0.1": "", "172.32.0.1": "", "223.255.255.255": "",
		"2606:4700::1111": "", "2a00::1": "", "::ffff:8.8.8.8": "",
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private", "fd00::1": "private", "fc00::1": "private",
		"::ffff:10.0.0.1": "private", "fd00:ec2::254": "private",
		"169.254.169.254": "link-local", "fe80::1": "link-local", "fe80::1%lo": "link-local",
		"100.64.0.1": "carrier-grade NAT", "100.100.100.200": "carrier-grade NAT", "168.63.129.16": "a cloud's metadata service",
		"192.0.0.192": "special-purpose", "192.0.2.1": "for documentation", "198.18.0.1": "for benchmarks", "198.51.100.1": "for documentation",
		"203.0.113.1": "for documentation", "192.88.99.1": "a 6to4 relay", "224.0.0.1": "multicast", "239.1.1.1": "multicast", "240.0.0.1": "reserved", "255.255.255.255": "reserved",
		"64:ff9b::7f00:1": "NAT64", "64:ff9b:1::1": "NAT64", "2002:7f00:1::": "6to4", "2001:0:1::": "Teredo", "2001:2::1": "special-purpose", "2001:db8::1": "for documentation",
		"3fff::1": "for documentation", "ff02::1": "multicast", "::127.0.0.1": "not a public one", "::ffff:0:127.0.0.1": "not a public one", "fec0::1": "not a public one", "100::1": "not a public one", "5f00::1": "not a public one",
	} {
		if got := (&guard{}).judge(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is %q, want %q", addr, got, want)
		}
	}
}

func TestAllowedNetworkOpensItselfOnly(t *testing.T) {
	t.Parallel()
	o := Options{Allow: []netip.Prefix{
		netip.MustParsePrefix("10.1.2.3/16"), netip.MustParsePrefix("::ffff:192.168.0.0/112"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("127.0.0.1/32"),
	}}
	g := &guard{allow: o.allowed()}
	for addr, open := range map[string]bool{
		"10.1.0.1": true, "::ffff:10.1.0.1": true, "10.2.0.1": false, "192.168.0.9": true, "192.168.1.1": true, "192.169.0.1": true, "fe80::1%eth0": true,
		"127.0.0.1": true, "127.0.0.2": false, "0.0.0.0": false, "::1": false, "8.8.8.8": true,
	} {
		if got := g.judge(netip.MustParseAddr(addr)) == ""; got != open {
			t.Errorf("%s: open %v, want %v", addr, got, open)
		}
	}
}

func TestC158RedirectsAreNeverFollowed(t *testing.T) {
	t.Parallel()
	inside := listen(t, "127.0.0.1:0")
	targets := []string{
		"http://169.254.169.254/latest/meta-data/", "http://" + inside.Addr().String() + "/", "//" + inside.Addr().String() + "/", "/elsewhere",
		"file:///etc/passwd", "gopher://" + inside.Addr().String() + "/_PING", "http://user:pass@" + inside.Addr().String() + "/", "", "\u009b2J" + strings.Repeat("x", 5000),
	}
	secret := "whsec_" + strings.Repeat("AAAA", 8)
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, target := range targets {
			r := &receiver{}
			answer := r.record(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Location"] = []string{target}
				w.WriteHeader(code)
			})
			r.Server = httptest.NewTLSServer(answer) // http from https too
			h := handler(t, Options{Secrets: []string{secret}, RootCAs: roots(r.Certificate())})
			v := try(t, h, Request{URL: r.URL, Body: []byte(`{"a":1}`)})
			if v.fate != hopeless || !strings.Contains(v.err.Error(), "redirects are not followed") || len(v.err.Error()) > 400 || strings.Contains(v.err.Error(), "\u009b") {
				t.Errorf("%d to %.50s: fate %v, %.500q", code, target, v.fate, v.err)
			}
			r.only(t)
			r.Close()
		}
	}
	inside.untouched(t)
}

// zone answers DNS questions from a table; a name's answers may change by call.
type zone map[string]func(n int) []string

func (z zone) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]*atomic.Int32{}
	for name := range z {
		calls[name] = new(atomic.Int32)
	}
	started := make(chan struct{})
	srv := &dns.Server{PacketConn: pc, NotifyStartedFunc: func() { close(started) }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		name := strings.TrimSuffix(strings.ToLower(q.Question[0].Name), ".")
		if answers := z[name]; answers == nil {
			m.Rcode = dns.RcodeNameError
		} else {
			n := 0
			if q.Question[0].Qtype == dns.TypeA {
				n = int(calls[name].Add(1))
			}
			for _, a := range answers(n) {
				m.Answer = append(m.Answer, record(q.Question[0], a)...)
			}
		}
		_ = w.WriteMsg(m)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { _ = srv.Shutdown(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// record is addr as an answer to q, with a TTL of 0; none where q asks for the
// other family.
func record(q dns.Question, addr string) []dns.RR {
	kind := map[bool]uint16{true: dns.TypeA, false: dns.TypeAAAA}[netip.MustParseAddr(addr).Is4()]
	if q.Qtype != kind {
		return nil
	}
	rr, err := dns.NewRR(q.Name + " 0 IN " + dns.TypeToString[kind] + " " + addr)
	if err != nil {
		panic(err)
	}
	return []dns.RR{rr}
}

func always(addrs ...string) func(int) []string { return func(int) []string { return addrs } }

func TestC160NameThatResolvesToAForbiddenAddress(t *testing.T) {
	t.Parallel()
	inside := listen(t, "127.0.0.1:0")
	z := zone{
		"loop.test":   always("127.0.0.1"),
		"loop6.test":  always("::1"),
		"meta.test":   always("169.254.169.254"),
		"both.test":   always("127.0.0.1", "::1", "10.0.0.1"),
		"mapped.test": always("::ffff:127.0.0.1"),
	}
	h := strict(t, Options{Resolver: z.resolver(t)})
	for name := range z {
		v := try(t, h, Request{URL: "http://" + name + ":" + inside.port() + "/"})
		if v.fate == again && name == "loop6.test" && !hasIPv6() { // not even a socket to ask about
			continue
		}
		if v.fate != hopeless || !strings.Contains(v.err.Error(), "its network is not allowed") {
			t.Errorf("%s: fate %v, %v", name, v.fate, v.err)
		}
	}
	hosts := strict(t, Options{}) // the hosts file
	if v := try(t, hosts, Request{URL: "http://localhost:" + inside.port() + "/"}); v.fate != hopeless {
		t.Errorf("localhost: fate %v, %v", v.fate, v.err)
	}
	if v := try(t, h, Request{URL: "http://nowhere.test/"}); v.fate != again || !strings.Contains(v.err.Error(), "no such host") {
		t.Errorf("an unknown name: fate %v, %v", v.fate, v.err)
	}
	inside.untouched(t)
}

// A name with an allowed address (127.0.0.1 stands for a public one) and a
// forbidden one beside it, both on the same port.
func TestC160NameWithPublicAndForbiddenAddresses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is an address of every machine on Linux only")
	}
	r := receive(t, ok)
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	inside := listen(t, "127.0.0.2:"+port)
	z := zone{
		"first.test":  always("127.0.0.1", "127.0.0.2"),
		"second.test": always("127.0.0.2", "127.0.0.1"),
		"rebind.test": func(n int) []string { return [][]string{{"127.0.0.1"}, {"127.0.0.2"}}[min(max(n, 1), 2)-1] },
	}
	h := handler(t, Options{Resolver: z.resolver(t), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	send := func(name string) verdict {
		h.Close() // no connection is left from before
		return try(t, h, Request{URL: "http://" + name + ":" + port + "/"})
	}
	for _, name := range []string{"first.test", "second.test", "rebind.test"} {
		if v := send(name); v.fate != delivered {
			t.Errorf("%s: fate %v, %v", name, v.fate, v.err)
		}
	}
	if v := send("rebind.test"); v.fate != hopeless {
		t.Errorf("bound anew: fate %v, %v", v.fate, v.err)
	}
	r.Close()
	for _, name := range []string{"first.test", "second.test"} { // the public one may come back
		if v := send(name); v.fate != again {
			t.Errorf("%s without its public address: fate %v, %v", name, v.fate, v.err)
		}
	}
	inside.untouched(t)
}

func TestC161OddSpellingsOfForbiddenAddresses(t *testing.T) {
	t.Parallel()
	if os.Getenv("HTTP_PROXY") == "" {
		t.Fatal("no proxy is set, so nothing shows that it is not used")
	}
	inside := listen(t, "127.0.0.1:0")
	h := strict(t, Options{})
	for _, host := range []string{
		"127.0.0.1", "2130706433", "0x7f000001", "0X7F000001", "0177.0.0.1", "0x7f.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "0", "00000000177.0.0.1", "0x",
		"[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "0.0.0.0", "100.64.0.1", "[fd00::1]", "[fe80::1%25lo]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"localhost", "localhost.", "LOCALHOST", "127。0。0。1", "①②⑦.0.0.1", "169.254.169.254", "[::ffff:a9fe:a9fe]", "10.0.0.1", "192.168.0.1", "255.255.255.255", "224.0.0.1",
	} {
		for _, scheme := range []string{"http", "https"} {
			v := try(t, h, Request{URL: scheme + "://" + host + ":" + inside.port() + "/"})
			if v.fate != hopeless {
				t.Errorf("%s: fate %v, %v", host, v.fate, v.err)
			}
		}
	}
	inside.untouched(t)
}

func TestC160RefusalIsLogged(t *testing.T) {
	t.Parallel()
	log := &strings.Builder{}
	h := strict(t, Options{Log: logTo(log)})
	try(t, h, Request{URL: "http://127.0.0.1:" + strconv.Itoa(6379) + "/"})
	for _, want := range []string{`"job":"job-1"`, `"host":"127.0.0.1:6379"`, `"address":"127.0.0.1"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s does not say %s", log, want)
		}
	}
}

func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		l.Close()
	}
	return err == nil
}
