package redistest

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// shared is the server of this test binary.
var shared struct {
	sync.Mutex
	server *Server
	err    error // of the first start: the second would fail alike, only later
}

// Main is the body of TestMain: it runs the tests, stops the shared server and
// fails when a goroutine is left. It does not return.
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M, opts ...goleak.Option) {
	code := m.Run()
	err := stopShared()
	if code == 0 {
		err = errors.Join(err, goleak.Find(opts...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "after the tests:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Shared returns the server of this test binary and starts it at the first
// call. Many tests use it at once: keep to names below Prefix(t), change no
// configuration, flush nothing.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = launch(nil)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func stopShared() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return nil
	}
	err := shared.server.be.remove()
	shared.server, shared.err = nil, errors.New("the shared Redis has been stopped: all tests are over")
	return err
}

// Client returns a client of the shared server, closed when t ends.
func Client(t testing.TB) *redis.Client {
	t.Helper()
	return Shared(t).Client(t)
}

// Both runs f as two sub-tests: against the shared real server and against a
// fresh in-process miniredis. kind is "redis-server" or "miniredis"; the first
// also stands for Valkey. f may call t.Parallel.
func Both(t *testing.T, f func(t *testing.T, rdb *redis.Client, kind string)) {
	t.Helper()
	t.Run("redis-server", func(t *testing.T) { f(t, Client(t), "redis-server") })
	t.Run("miniredis", func(t *testing.T) {
		m, err := miniredis.Run()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		rdb := dial(m.Addr(), "")
		t.Cleanup(func() { _ = rdb.Close() })
		f(t, rdb, "miniredis")
	})
}

var (
	prefixes  atomic.Int64
	notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
)

// Prefix returns a name that no other call in this test binary returns, of at
// most 60 characters out of A-Z, a-z, 0-9, dot, underscore and hyphen.
func Prefix(t testing.TB) string {
	name := notInName.ReplaceAllString(t.Name(), "-")
	return "t" + strconv.FormatInt(prefixes.Add(1), 10) + "-" + name[:min(len(name), 40)]
}
