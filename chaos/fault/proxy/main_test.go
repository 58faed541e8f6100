package proxy

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// setting is a proxy before the package's Redis, with a client on either side.
type setting struct {
	*testing.T
	p      *Proxy
	direct *redis.Client
	rdb    *redis.Client
	prefix string
}

func newSetting(t *testing.T) *setting {
	t.Helper()
	return settingOn(t, redistest.Shared(t))
}

func settingOn(t *testing.T, server *redistest.Server) *setting {
	t.Helper()
	p := run(t, server.Addr(), NewNames(nil))
	return &setting{T: t, p: p, direct: server.Client(t), rdb: client(t, p.Addr()), prefix: redistest.Prefix(t)}
}

// run serves a proxy until the test is over.
func run(t testing.TB, upstream string, names *Names) *Proxy {
	t.Helper()
	p, err := Listen("127.0.0.1:0", func() string { return upstream }, names)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := within(t, "the end of the proxy", ended); err != nil {
			t.Error(err)
		}
	})
	return p
}

func client(t testing.TB, addr string, tune ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{
		Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, DisableIdentity: true, Protocol: 2,
		ReadTimeout: 20 * time.Second, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for _, f := range tune {
		f(o)
	}
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

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

func (s *setting) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *setting) key(name string) string { return s.prefix + ":" + name }

// arrives waits until something is pushed to the list, and returns it.
func (s *setting) arrives(list string) string {
	s.Helper()
	v, err := s.direct.BLPop(s.Context(), 20*time.Second, list).Result()
	if err != nil {
		s.Fatalf("nothing arrived in %s: %v", list, err)
	}
	return v[1]
}

// nothing checks that the list is empty.
func (s *setting) nothing(list string) {
	s.Helper()
	if n, err := s.direct.LLen(s.Context(), list).Result(); err != nil || n != 0 {
		s.Fatalf("%s has %d entries, %v; want none", list, n, err)
	}
}

// impatient gives a command too little time for a way that is blocked.
func (s *setting) impatient(command func(context.Context) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 50*time.Millisecond)
	defer cancel()
	if err := command(ctx); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		s.Fatalf("error %v, want a time-out", err)
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// broken checks that a command was cut off by a broken connection.
func (s *setting) broken(err error) {
	s.Helper()
	if err == nil || isTimeout(err) {
		s.Fatalf("error %v, want a broken connection", err)
	}
}
