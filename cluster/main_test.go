package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

const patience = 15 * time.Second // of a test for an event; far above what it takes

// TestMain looks for leaks with some grace: goroutines of memberlist end with
// their time-outs, a few seconds after Shutdown.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		err := goleak.Find()
		for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); {
			err = goleak.Find()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// peer is a Cluster that runs.
type peer struct {
	*Cluster
	t       *testing.T
	cancel  context.CancelFunc
	ended   chan error
	sockets memberlist.NodeAwareTransport
	net     *network
}

// start runs a node on a free port of loopback and waits for its sockets. At
// the end of the test it is stopped, which must succeed.
func start(t *testing.T, n *network, cfg Config, tweaks ...func(*Cluster)) *peer {
	t.Helper()
	p := &peer{t: t, ended: make(chan error, 1), net: n}
	if cfg.Bind == "" {
		cfg.Bind = "127.0.0.1:0"
	}
	cfg.Wrap = func(inner memberlist.NodeAwareTransport) memberlist.NodeAwareTransport {
		p.sockets = inner
		return n.wrap(inner)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, tweak := range tweaks {
		tweak(c)
	}
	p.Cluster = c
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.ended <- c.Run(ctx) }()
	select {
	case <-c.Ready():
	case err := <-p.ended:
		t.Fatalf("%s did not start: %v", cfg.Name, err)
	}
	t.Cleanup(func() { p.stop() })
	return p
}

// stop leaves and returns how long that took.
func (p *peer) stop() time.Duration {
	p.t.Helper()
	begun := time.Now()
	p.cancel()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("Run: %v", err)
		}
		p.ended <- nil // for the next stop
	case <-time.After(patience):
		p.t.Fatalf("%s does not stop", p.Name())
	}
	return time.Since(begun)
}

// kill takes the network away as a death does: sockets closed, nothing sent.
func (p *peer) kill() {
	p.net.silence(p.Addr())
	_ = p.sockets.Shutdown()
}

// sees waits until p knows the other in that state.
func (p *peer) sees(name string, s State) Member {
	p.t.Helper()
	var got Member
	p.awaits(name+" "+string(s), func() bool {
		m, ok := p.roster.get(name)
		got = m
		return ok && m.State == s
	})
	return got
}

// awaits waits for a change of the members after which cond holds.
func (p *peer) awaits(what string, cond func() bool) {
	p.t.Helper()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-p.Events():
		case <-deadline:
			p.t.Fatalf("%s waited in vain for: %s; it sees %v", p.Name(), what, p.Members())
		}
	}
}

// eventually is for what has no event.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// network can cut pairs of nodes off each other, and silence one.
type network struct {
	mu      sync.Mutex
	cut     map[[2]string]bool
	silent  map[string]bool
	refused chan string // one line for each dial that was cut
}

func newNetwork() *network {
	return &network{cut: map[[2]string]bool{}, silent: map[string]bool{}, refused: make(chan string, 1000)}
}

func (n *network) wrap(inner memberlist.NodeAwareTransport) memberlist.NodeAwareTransport {
	ip, port, _ := inner.FinalAdvertiseAddr("", 0)
	return &faulty{NodeAwareTransport: inner, net: n, self: net.JoinHostPort(ip.String(), fmt.Sprint(port))}
}

func (n *network) split(cut bool, left, right []*peer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range left {
		for _, b := range right {
			n.cut[[2]string{a.Addr(), b.Addr()}], n.cut[[2]string{b.Addr(), a.Addr()}] = cut, cut
		}
	}
}

func (n *network) silence(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent[addr] = true
}

func (n *network) lost(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent[from] || n.cut[[2]string{from, to}]
}

type faulty struct {
	memberlist.NodeAwareTransport
	net  *network
	self string
}

func (f *faulty) WriteTo(b []byte, addr string) (time.Time, error) {
	return f.WriteToAddress(b, memberlist.Address{Addr: addr})
}

func (f *faulty) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if f.net.lost(f.self, a.Addr) {
		return time.Now(), nil
	}
	return f.NodeAwareTransport.WriteToAddress(b, a)
}

func (f *faulty) DialTimeout(addr string, d time.Duration) (net.Conn, error) {
	return f.DialAddressTimeout(memberlist.Address{Addr: addr}, d)
}

func (f *faulty) DialAddressTimeout(a memberlist.Address, d time.Duration) (net.Conn, error) {
	if f.net.lost(f.self, a.Addr) {
		select {
		case f.net.refused <- f.self:
		default:
		}
		return nil, os.ErrDeadlineExceeded
	}
	return f.NodeAwareTransport.DialAddressTimeout(a, d)
}

// journal keeps log lines.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) count(part string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.buf.String(), part)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *journal) logger() zerolog.Logger { return zerolog.New(j) }
