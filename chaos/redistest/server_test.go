package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestAKilledServerComesBackWithWhatItsLogKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts []Option
		want string
	}{
		"with an AOF the acknowledged write is there": {[]Option{WithAOF("always")}, "kept"},
		"without one nothing is":                      {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Dedicated(t, tt.opts...)
			rdb, ctx, addr := s.Client(t), t.Context(), s.Addr()
			if err := rdb.Set(ctx, "k", "kept", 0).Err(); err != nil {
				t.Fatal(err)
			}
			s.Kill()
			s.Kill() // a second one does nothing
			if err := rdb.Ping(ctx).Err(); err == nil {
				t.Fatal("a killed server answered")
			}
			s.Restart()
			if s.Addr() != addr {
				t.Errorf("the address changed from %s to %s", addr, s.Addr())
			}
			if got := s.Client(t).Get(ctx, "k").Val(); got != tt.want {
				t.Errorf("after the restart k is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestARunningServerCanBeRestarted(t *testing.T) {
	t.Parallel()
	s := Dedicated(t, WithAOF("everysec"))
	before := runID(t, s)
	s.Restart()
	if after := runID(t, s); after == before {
		t.Errorf("run_id is still %s", after)
	}
}

func TestAPausedServerHoldsItsConnectionsAndSaysNothing(t *testing.T) {
	t.Parallel()
	s := Dedicated(t)
	rdb := s.Client(t)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	s.Pause() // a second one does nothing
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := rdb.Ping(ctx).Err()
	var timeout net.Error
	if !errors.Is(err, context.DeadlineExceeded) && !(errors.As(err, &timeout) && timeout.Timeout()) {
		t.Errorf("ping of a paused server: %v, want a time-out", err)
	}
	s.Resume()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping after Resume: %v", err)
	}
}

func TestAPausedServerCanBeKilled(t *testing.T) {
	t.Parallel()
	s := Dedicated(t)
	s.Pause()
	s.Kill()
	s.Restart()
	if err := s.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	t.Parallel()
	s := Dedicated(t, WithAOF("always"), WithArgs("maxmemory", "64mb", "requirepass", "se cret"))
	s.Config("maxmemory-policy", "noeviction")
	o, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	for name, want := range map[string]string{
		"maxmemory": "67108864", "appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction",
	} {
		if got := rdb.ConfigGet(t.Context(), name).Val()[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestAServerListensOnLoopbackAwayFromTheKnownPort(t *testing.T) {
	t.Parallel()
	host, port, err := net.SplitHostPort(Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := strconv.Atoi(port); n < lowPort || n >= highPort {
		t.Errorf("port %s is not between %d and %d", port, lowPort, highPort)
	}
	if host != "127.0.0.1" && Shared(t).Version() == "" {
		t.Errorf("host %s", host)
	}
}

func TestTheVersionIsTheServersOwn(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	var major, minor int
	if n, _ := fmt.Sscanf(s.Version(), "%d.%d", &major, &minor); n != 2 || (version{major, minor}).less(oldest) {
		t.Errorf("version %q, want %v or later", s.Version(), oldest)
	}
}

func TestTheSharedServerIsOneAndCannotBeHurt(t *testing.T) {
	t.Parallel()
	addrs := make([]string, 8)
	var wg sync.WaitGroup
	for i := range addrs {
		wg.Go(func() { addrs[i] = Shared(t).Addr() })
	}
	wg.Wait()
	for _, addr := range addrs {
		if addr != addrs[0] {
			t.Errorf("two shared servers: %v", addrs)
		}
	}
	for name, hurt := range map[string]func(){
		"Kill": Shared(t).Kill, "Restart": Shared(t).Restart, "Pause": Shared(t).Pause, "Resume": Shared(t).Resume,
		"Config": func() { Shared(t).Config("maxmemory", "1mb") },
	} {
		if !panics(hurt) {
			t.Errorf("%s of the shared server was allowed", name)
		}
	}
}

func TestBothRunsOnARealServerAndOnMiniredis(t *testing.T) {
	t.Parallel()
	var kinds []string
	prefix := Prefix(t)
	Both(t, func(t *testing.T, rdb *redis.Client, kind string) {
		kinds = append(kinds, kind)
		if n, err := rdb.Incr(t.Context(), prefix+":n").Result(); n != 1 || err != nil {
			t.Errorf("INCR on a fresh store: %d, %v", n, err)
		}
		reply, err := rdb.Eval(t.Context(), "return {'OK', ARGV[1]}", nil, "x").StringSlice()
		if err != nil || strings.Join(reply, " ") != "OK x" {
			t.Errorf("EVAL: %v, %v", reply, err)
		}
	})
	if got := strings.Join(kinds, " "); got != "redis-server miniredis" {
		t.Errorf("ran on %q", got)
	}
}

func TestPrefixesAreDistinctAndFitAsNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	t.Run("names with spaces / slashes and ümlauts, which go on for longer than anybody would like", func(t *testing.T) {
		for range 100 {
			p := Prefix(t)
			if seen[p] || len(p) > 60 || notInName.MatchString(p) {
				t.Fatalf("prefix %q: repeated, too long or not a name", p)
			}
			seen[p] = true
		}
	})
}

func runID(t *testing.T, s *Server) string {
	t.Helper()
	info, err := s.Client(t).Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(info, "run_id:")
	id, _, _ := strings.Cut(after, "\r\n")
	return id
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
