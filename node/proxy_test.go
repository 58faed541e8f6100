package node

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// proxy stands between a node and Redis. It can hold back the replies of chosen
// commands, and swallow everything both ways without closing a connection.
type proxy struct {
	listener net.Listener
	target   string
	done     chan struct{} // the test is over
	pumps    sync.WaitGroup

	mu   sync.Mutex
	hold func(request string) <-chan struct{}
	open chan struct{} // closed unless the link is cut
}

func startProxy(t *testing.T, url string) *proxy {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: o.Addr, done: make(chan struct{}), open: make(chan struct{})}
	close(p.open)
	p.pumps.Go(p.accept)
	t.Cleanup(func() {
		close(p.done)
		_ = l.Close()
		p.pumps.Wait()
	})
	return p
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

// holdReplies asks f for each request; what it returns is waited for before
// anything more of Redis's answers on that connection passes. nil passes at once.
func (p *proxy) holdReplies(f func(request string) <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = f
}

// cut swallows what is sent from now on, until heal.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.open)
}

func (p *proxy) state() (hold func(string) <-chan struct{}, open chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hold, p.open
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		l := &link{p: p, in: in, out: out, holds: make(chan (<-chan struct{}), 1000), gone: make(chan struct{})}
		p.pumps.Go(l.requests)
		p.pumps.Go(l.replies)
		p.pumps.Go(func() {
			select {
			case <-p.done:
			case <-l.gone:
			}
			_, _ = in.Close(), out.Close()
		})
	}
}

// link is one connection through the proxy.
type link struct {
	p       *proxy
	in, out net.Conn
	holds   chan (<-chan struct{})
	gone    chan struct{} // closed by requests: the node's end is closed
}

func (l *link) requests() {
	defer close(l.gone)
	buf := make([]byte, 1<<16)
	for {
		n, err := l.in.Read(buf)
		if err != nil {
			return
		}
		hold, open := l.p.state()
		if !l.await(open) {
			return
		}
		if hold != nil {
			if held := hold(string(buf[:n])); held != nil {
				l.holds <- held
			}
		}
		if _, err := l.out.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *link) replies() {
	buf := make([]byte, 1<<16)
	for {
		n, err := l.out.Read(buf)
		if err != nil {
			_ = l.in.Close()
			return
		}
		_, open := l.p.state()
		if !l.await(open) {
			return
		}
		for len(l.holds) > 0 {
			if !l.await(<-l.holds) {
				return
			}
		}
		if _, err := l.in.Write(buf[:n]); err != nil {
			return
		}
	}
}

// await waits for c; false when the link is over first.
func (l *link) await(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-l.gone:
		return false
	case <-l.p.done:
		return false
	}
}

// isExchange knows the one script that nodes call with all of these keys.
func isExchange(request string) bool {
	for _, key := range []string{":holders", ":cancels", ":completed", ":wake", "VALSHA"} {
		if !strings.Contains(strings.ToUpper(request), strings.ToUpper(key)) {
			return false
		}
	}
	return true
}
