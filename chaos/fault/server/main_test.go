package server

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program returns a server of this machine, or ends the test: on a machine that
// has Redis in containers only, nothing here can run.
func program(t *testing.T) string {
	t.Helper()
	found, _ := Find(t.Context())
	found = cmp.Or(os.Getenv("KELPIE_TEST_REDIS"), found)
	switch {
	case found != "":
	case os.Getenv("KELPIE_TEST_BACKEND") == "container":
		t.Skip("this machine has Redis in containers only")
	default:
		t.Fatalf("no redis-server or valkey-server %s or later on the PATH: run \"make test\", which installs one", queue.MinVersion)
	}
	return found
}

func openKennel(t *testing.T) *process.Kennel {
	t.Helper()
	k, err := process.Open(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// setting is a server of one test.
type setting struct {
	*testing.T
	*Redis
	rdb *redis.Client
}

func newSetting(t *testing.T, o Options) *setting {
	t.Helper()
	o.Program = program(t)
	r, err := Start(t.Context(), openKennel(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return &setting{T: t, Redis: r, rdb: connect(t, r.URL())}
}

func connect(t *testing.T, url string) *redis.Client {
	t.Helper()
	rdb, err := queue.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func (s *setting) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *setting) set(key string) {
	s.Helper()
	s.ok(s.rdb.Set(s.Context(), key, "v", 0).Err())
}

// has checks which of the keys there are.
func (s *setting) has(want string) {
	s.Helper()
	var got []string
	for _, key := range []string{"a", "b", "c"} {
		n, err := s.rdb.Exists(s.Context(), key).Result()
		s.ok(err)
		if n == 1 {
			got = append(got, key)
		}
	}
	if strings.Join(got, " ") != want {
		s.Errorf("Redis has %q, want %q", got, want)
	}
}

// written waits until all is in the AOF, which everysec may put off.
func (s *setting) written() {
	s.Helper()
	eventually(s.T, "the write to the AOF", func() bool {
		return strings.Contains(s.rdb.Info(s.Context(), "persistence").Val(), "aof_buffer_length:0\r")
	})
}

// refused checks that Redis said no with this word.
func (s *setting) refused(err error, word string) {
	s.Helper()
	if err == nil || !strings.Contains(err.Error(), word) {
		s.Fatalf("error %v, want %s", err, word)
	}
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("waited too long for "+what))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		case <-tick.C:
		}
	}
}
