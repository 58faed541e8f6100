package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Proxy passes connections on to Redis. Its methods are safe for concurrent use.
type Proxy struct {
	addr     string
	upstream func() string
	names    *Names
	up, down *gate
	work     sync.WaitGroup // links and late commands; ended by Run

	mu       sync.Mutex
	ctx      context.Context // of Run
	listener net.Listener    // nil: cut, or ended
	mended   chan struct{}   // closed when a listener is there again
	ended    bool
	links    map[*link]bool
	shots    []*Aimed // the oldest first
}

// Ports for a proxy: below what the kernels give to clients, since a client that
// dials a dead port of that range may connect to itself; away from ports that
// people know.
const lowPort, highPort = 20000, 32000

// Listen takes the address; port 0 takes a free one below those that the kernel
// gives to clients. upstream tells where Redis is, as host:port, for each
// connection anew; names may be shared. Nothing is accepted before Run, which
// closes the address in the end.
func Listen(addr string, upstream func() string, names *Names) (*Proxy, error) {
	l, err := listen(addr)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return &Proxy{
		addr: l.Addr().String(), upstream: upstream, names: names, up: newGate(), down: newGate(),
		ctx: context.Background(), listener: l, links: map[*link]bool{},
	}, nil
}

func listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		return net.Listen("tcp", addr)
	}
	for range 100 {
		port := lowPort + rand.IntN(highPort-lowPort)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// Addr is host:port, the same over Cut and Mend.
func (p *Proxy) Addr() string { return p.addr }

// Run serves until ctx ends, then closes all connections and the address.
func (p *Proxy) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer p.work.Wait()
	defer p.end()
	defer cancel()
	p.mu.Lock()
	p.ctx = ctx
	p.mu.Unlock()
	defer context.AfterFunc(ctx, p.end)()
	for {
		l, mended := p.current()
		if l == nil {
			select {
			case <-ctx.Done():
				return nil
			case <-mended:
			}
			continue
		}
		client, err := l.Accept()
		switch {
		case err == nil:
			p.admit(ctx, client)
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, net.ErrClosed): // such as too many open files
			pause(ctx, 50*time.Millisecond)
		}
	}
}

// current returns the listener, or what is closed when there is one again.
func (p *Proxy) current() (net.Listener, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil && p.mended == nil {
		p.mended = make(chan struct{})
	}
	return p.listener, p.mended
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// admit gives a connection its link, unless the way was cut meanwhile.
func (p *Proxy) admit(ctx context.Context, client net.Conn) {
	l := newLink(p, client)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		l.end(true)
		return
	}
	p.links[l] = true
	p.work.Go(func() {
		l.serve(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
}

func (p *Proxy) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.Cut()
}

// SetUp sets the way from clients to Redis, also for connections that are there.
func (p *Proxy) SetUp(w Way) { p.up.set(w) }

// SetDown sets the way from Redis to clients.
func (p *Proxy) SetDown(w Way) { p.down.set(w) }

// Cut resets all connections and refuses new ones until Mend. What was held on
// them is lost; late commands and copies still arrive.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		l.end(true)
	}
}

// Mend takes the address again; without a Cut before it does nothing. An error
// means that somebody else has it now, or that Run has ended.
func (p *Proxy) Mend() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errors.New("proxy: it has ended")
	}
	if p.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	p.listener = l
	if p.mended != nil {
		close(p.mended)
		p.mended = nil
	}
	return nil
}

// Aim lies in wait for commands. Of several shots at the same command the oldest
// hits.
func (p *Proxy) Aim(s Shot) *Aimed {
	a := newAimed(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shots = append(p.shots, a)
	return a
}

// aim gives a command to the oldest shot that hits it.
func (p *Proxy) aim(c *command) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.shots) == 0 {
		return false
	}
	p.shots = slices.DeleteFunc(p.shots, (*Aimed).over)
	for _, a := range p.shots {
		if a.hit(c) {
			c.aimed = a
			return true
		}
	}
	return false
}
