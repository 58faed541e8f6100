package queue

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// harm is what a proxy does to a command of the client.
type harm int

const (
	pass      harm = iota
	loseReply      // Redis executes it, then the connection breaks without an answer
	holdReply      // Redis executes it, the answer stays until release
	loseAll        // Redis never sees it, the connection breaks
)

// proxy stands between a client and Redis and harms commands one by one.
type proxy struct {
	t        testing.TB
	target   string
	listener net.Listener
	decide   func(command string, n int) harm // n counts the commands of that name from 1

	mu    sync.Mutex
	seen  map[string]int
	conns []net.Conn

	executed chan string   // one for each harmed command that Redis has answered
	release  chan struct{} // closed: held answers go on
	done     sync.WaitGroup
}

func newProxy(t testing.TB, target string, decide func(command string, n int) harm) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: target, listener: l, decide: decide, seen: map[string]int{},
		executed: make(chan string, 10_000), release: make(chan struct{})}
	p.done.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.keep(c)
		p.done.Go(func() { p.serve(c) })
	}
}

func (p *proxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.letGo()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
}

func (p *proxy) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.release:
	default:
		close(p.release)
	}
}

// serve forwards command by command and copies whatever comes back.
func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	p.keep(server)
	in, out := bufio.NewReader(client), bufio.NewReader(server)
	for {
		raw, name, err := readCommand(in)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.seen[name]++
		what := p.decide(name, p.seen[name])
		p.mu.Unlock()
		if what == loseAll {
			return
		}
		if _, err := server.Write(raw); err != nil {
			return
		}
		answer, err := readAnswer(out)
		if err != nil {
			return
		}
		if what != pass {
			p.executed <- name
		}
		if what == loseReply {
			return
		}
		if what == holdReply {
			<-p.release
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

// readCommand reads one command as the client wrote it.
func readCommand(r *bufio.Reader) (raw []byte, name string, err error) {
	raw, err = readAnswer(r)
	if parts := strings.SplitN(string(raw), "\r\n", 4); err == nil && len(parts) == 4 {
		name = strings.ToLower(parts[2])
	}
	return raw, name, err
}

// readAnswer reads one value of RESP, in either version, as bytes.
func readAnswer(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(r, body)
		return append(line, body...), err
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for range n {
			part, err := readAnswer(r)
			if err != nil {
				return nil, err
			}
			line = append(line, part...)
		}
		return line, nil
	case '+', '-', ':', '_', '#', ',', '(':
		return line, nil
	}
	return nil, fmt.Errorf("not RESP: %q", line)
}

// through returns a client of the space that goes through a proxy.
func (s *space) through(o Options, tune func(*redis.Options), decide func(command string, n int) harm) (*Client, *proxy) {
	s.t.Helper()
	p := newProxy(s.t, s.rdb.Options().Addr, decide)
	opts, err := ParseURL("redis://" + p.listener.Addr().String())
	s.ok(err)
	if tune != nil {
		tune(opts)
	}
	rdb := redis.NewClient(opts)
	rdb.AddHook(s.tap)
	o.Prefix = s.c.Prefix()
	c, err := New(rdb, o)
	s.ok(err)
	s.t.Cleanup(func() { p.letGo(); _ = c.Close(); _ = rdb.Close() })
	return c, p
}

// on harms the numbers of one command.
func on(command string, what harm, numbers ...int) func(string, int) harm {
	return func(c string, n int) harm {
		for _, m := range numbers {
			if c == command && n == m {
				return what
			}
		}
		return pass
	}
}

func every(command string, k int, what harm) func(string, int) harm {
	return func(c string, n int) harm {
		if c == command && n%k == 0 {
			return what
		}
		return pass
	}
}

// within fails when nothing comes for a long time.
func within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("waited too long for %s", what)
		panic("not reached")
	}
}
