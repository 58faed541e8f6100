package queue

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestAddressesOfSentinels(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		url       string
		master    string
		sentinels string
		db        int
		user      string
		want      string // of the error
	}{
		"three Sentinels and a master":         {url: "redis+sentinel://a:1,b:2,[::1]:3/mymaster", master: "mymaster", sentinels: "a:1 b:2 [::1]:3"},
		"the usual port where none is given":   {url: "redis+sentinel://a,b:2/m", master: "m", sentinels: "a:26379 b:2"},
		"a database":                           {url: "redis+sentinel://a:1/m/3", master: "m", sentinels: "a:1", db: 3},
		"user and password are the servers'":   {url: "redis+sentinel://u:p%40ss@a:1,b:2/m", master: "m", sentinels: "a:1 b:2", user: "u"},
		"other options go to the servers":      {url: "redis+sentinel://a:1/m?max_idle_conns=2", master: "m", sentinels: "a:1"},
		"no master":                            {url: "redis+sentinel://u:secret@a:1,b:2", want: `redis URL "redis+sentinel://...a:1,b:2": the name of the master is missing`},
		"an empty Sentinel":                    {url: "redis+sentinel://a:1,,b:2/m", want: "each Sentinel must be host or host:port"},
		"a master with a space":                {url: "redis+sentinel://a:1/my master", want: "must be printable"},
		"an option that nobody knows":          {url: "redis+sentinel://u:secret@a:1/m?colour=red", want: "unexpected option: colour"},
		"a database that is none":              {url: "redis+sentinel://u:secret@a:1/m/x", want: `invalid database number: "x"`},
		"a list of servers without a Sentinel": {url: "redis://u:secret@a:1,b:2/m", want: "redis URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := CheckURL(tt.url)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
					t.Fatalf("CheckURL(%q) = %v, want %q and no password", tt.url, err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f, err := parseSentinel(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			if f.master != tt.master || strings.Join(f.sentinels, " ") != tt.sentinels || f.server.DB != tt.db || f.server.Username != tt.user {
				t.Errorf("read %+v of %q", f, tt.url)
			}
			network, addrs, err := Endpoints(tt.url)
			if err != nil || network != "tcp" || !slices.Equal(addrs, f.sentinels) {
				t.Errorf("Endpoints = %s %v, %v", network, addrs, err)
			}
		})
	}
}

func TestSentinelsOwnPasswordAndTLS(t *testing.T) {
	t.Parallel()
	f, err := parseSentinel("rediss+sentinel://u:p@a:1,b:2/m?sentinel_username=s&sentinel_password=q")
	if err != nil {
		t.Fatal(err)
	}
	if f.user != "s" || f.password != "q" || f.server.Username != "u" || f.server.Password != "p" {
		t.Errorf("read %q %q for the Sentinels, %q %q for the servers", f.user, f.password, f.server.Username, f.server.Password)
	}
	if f.server.TLSConfig == nil || f.server.TLSConfig.ServerName != "" {
		t.Error("a certificate is checked against who is dialled, not against the first Sentinel")
	}
}

func TestConnectTunesEitherKind(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://127.0.0.1:1", "redis+sentinel://127.0.0.1:1/m"} {
		rdb, err := Connect(url, func(o *redis.Options) { o.PoolSize = 7 })
		if err != nil {
			t.Fatal(err)
		}
		if o := rdb.Options(); o.PoolSize != 7 || o.MaxRetries != 0 || !o.ContextTimeoutEnabled || o.Protocol != 2 {
			t.Errorf("%s: pool of %d, %d retries, contexts %v, protocol %d", url, o.PoolSize, o.MaxRetries, o.ContextTimeoutEnabled, o.Protocol)
		}
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := ParseURL("redis+sentinel://127.0.0.1:1/m"); err == nil {
		t.Error("ParseURL returned one server for Sentinels")
	}
}

func TestWhoIsNotFoundThroughSentinelsIsUnreachable(t *testing.T) {
	t.Parallel()
	stranger := answering(t, "*-1\r\n") // what a Sentinel says of a name that it does not know
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	for name, tt := range map[string]struct{ url, want string }{
		"no Sentinel answers":        {"redis+sentinel://" + nobody.Addr().String() + "/m", "refused"},
		"no Sentinel knows the name": {"redis+sentinel://" + stranger + "/stranger", `no Sentinel knows a master "stranger"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb, err := Connect(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = rdb.Close() })
			c, err := New(rdb, Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Job(t.Context(), "default", "j1")
			if !errors.Is(err, ErrUnreachable) || IsUnknown(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("a look at a job: %v; want one that is unreachable, known not to have happened, and says %q", err, tt.want)
			}
		})
	}
}

// answering listens and gives the same answer to whatever it is asked.
func answering(t *testing.T, answer string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					if strings.HasPrefix(lines.Text(), "*") { // a command begins
						if _, err := io.WriteString(conn, answer); err != nil {
							return
						}
					}
				}
			})
		}
	})
	return l.Addr().String()
}
