package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// patience bounds every start, restart and end of a server. A container may
// have to be pulled first, which has pullPatience.
const (
	patience     = 20 * time.Second
	pullPatience = 3 * time.Minute
)

// backend is one server, however it runs. Calls come one at a time.
type backend interface {
	start(ctx context.Context) error // also again, on the same data and address
	kill() error                     // as kill -9; returns when it is dead
	pause() error
	resume() error
	remove() error // kills and deletes everything; nothing may be called after it
	addr() string  // host:port, fixed from the first start on
	output() string
	dead() bool // it has ended by itself, so no waiting helps
}

// Server is a private Redis. Its methods fail the test that owns it when they
// cannot do their work, so call those that do something (Kill, Restart, Pause,
// Resume, Config) from that test's goroutine.
type Server struct {
	tb       testing.TB // nil for the package's own server
	be       backend
	password string
	version  string
	paused   bool
}

// Dedicated starts a server for t alone and removes it when t ends. It takes
// some 20 ms as a process, a second as a container.
func Dedicated(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := launch(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.tb = t
	t.Cleanup(func() {
		if err := s.be.remove(); err != nil {
			t.Errorf("remove the test's Redis: %v", err)
		}
	})
	return s
}

// launch starts a server by the backend of this environment.
func launch(opts []Option) (*Server, error) {
	var c config
	for _, o := range opts {
		o(&c)
	}
	if c.err != nil {
		return nil, c.err
	}
	plan, err := choose()
	if err != nil {
		return nil, err
	}
	s := &Server{password: c.password}
	if plan.container {
		s.be = &containerBackend{image: plan.image, args: c.args}
	} else {
		s.be = &process{program: plan.program, args: c.args}
	}
	ctx, cancel := context.WithTimeout(context.Background(), pullPatience)
	defer cancel()
	if err := s.be.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a Redis for tests: %w", err), s.be.remove())
	}
	if err := s.awaitReady(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a Redis for tests: %w", err), s.be.remove())
	}
	return s, nil
}

// Addr returns host:port. It stays the same over Kill and Restart.
func (s *Server) Addr() string { return s.be.addr() }

// URL returns the address as redis://, with the password if there is one.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr(), Path: "/0"}
	if s.password != "" {
		u.User = url.UserPassword("", s.password)
	}
	return u.String()
}

// Version returns the version as the server tells it, such as "7.0.15". For
// Valkey it is Valkey's own, not the Redis version that it claims to match.
func (s *Server) Version() string { return s.version }

// Client returns a client without retries and with context deadlines, closed
// when t ends.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	rdb := s.client()
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Kill ends the server as kill -9 does and returns when it is dead. Killing a
// dead one does nothing.
func (s *Server) Kill() {
	s.own("Kill").Helper()
	s.paused = false
	s.must("kill", s.be.kill())
}

// Restart starts the server again on the same address, with what it kept:
// nothing, unless it has an AOF. A server that still runs is killed first. It
// returns when the server has loaded its data and answers.
func (s *Server) Restart() {
	s.own("Restart").Helper()
	s.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.must("restart", s.be.start(ctx))
	s.must("restart", s.awaitReady())
}

// Pause stops the server in its tracks (SIGSTOP): connections stay open, and
// nothing answers.
func (s *Server) Pause() {
	s.own("Pause").Helper()
	if !s.paused {
		s.must("pause", s.be.pause())
	}
	s.paused = true
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.own("Resume").Helper()
	if s.paused {
		s.must("resume", s.be.resume())
	}
	s.paused = false
}

// Config sets a parameter of the running server (CONFIG SET).
func (s *Server) Config(name, value string) {
	s.own("Config").Helper()
	rdb := s.client()
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.must("CONFIG SET "+name, rdb.ConfigSet(ctx, name, value).Err())
}

// own returns the test that owns s, and refuses to hurt the shared server.
func (s *Server) own(method string) testing.TB {
	if s.tb == nil {
		panic("redistest: " + method + " on the server that the package's tests share; use Dedicated")
	}
	return s.tb
}

func (s *Server) must(what string, err error) {
	if err != nil {
		s.tb.Helper()
		s.tb.Fatalf("%s Redis at %s: %v", what, s.Addr(), err)
	}
}

func (s *Server) client() *redis.Client { return dial(s.Addr(), s.password) }

// dial returns a client that hides nothing: no retry, no handshake of its own,
// and a context's deadline counts.
func dial(addr, password string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     addr,
		Password:                 password,
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              5 * time.Second,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// awaitReady returns when the server answers and has loaded its data.
func (s *Server) awaitReady() error {
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		version, err := s.probe()
		if err == nil {
			s.version = version
			return nil
		}
		if s.be.dead() {
			return fmt.Errorf("the server ended at once; it said:\n%s", s.be.output())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer within %v: %w; it said:\n%s", patience, err, s.be.output())
		}
		<-tick.C
	}
}

// probe asks for the version, which a server answers only once it has loaded.
func (s *Server) probe() (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second) // cheaper than a client while nobody listens
	if err != nil {
		return "", err
	}
	conn.Close()
	rdb := s.client()
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return "", err
	}
	info, err := rdb.Info(ctx, "server").Result()
	if p, ok := s.be.(*process); ok && err == nil && !p.is(info) {
		err = errors.New("another server answers on this port")
	}
	return versionFromInfo(info), err
}
