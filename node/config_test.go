package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

func TestCheckNamesEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	good := Config{Redis: "redis://127.0.0.1:6379"}
	with := func(change func(*Config)) Config { c := good; change(&c); return c }
	tests := map[string]struct {
		config Config
		want   []string // parts of the error; none: no error
	}{
		"only Redis is required":       {good, nil},
		"no Redis":                     {Config{}, []string{"redis:"}},
		"a bad URL":                    {Config{Redis: "http://x"}, []string{"redis URL"}},
		"a password is not shown":      {Config{Redis: "http://u:secret@x"}, []string{"redis URL"}},
		"a prefix with braces":         {with(func(c *Config) { c.Prefix = "a{b}" }), []string{"prefix"}},
		"a name with a space":          {with(func(c *Config) { c.Name = "a b" }), []string{"name"}},
		"a name too long":              {with(func(c *Config) { c.Name = strings.Repeat("n", 81) }), []string{"at most 80"}},
		"the reserved queue":           {with(func(c *Config) { c.Queues = []Queue{{"cluster", 1}} }), []string{"cluster"}},
		"a queue twice":                {with(func(c *Config) { c.Queues = []Queue{{"a", 1}, {"a", 2}} }), []string{"queue a: is named twice"}},
		"a negative weight":            {with(func(c *Config) { c.Queues = []Queue{{"a", -1}} }), []string{"queue a weight -1: must be 1 to 1000"}},
		"too many workers":             {with(func(c *Config) { c.Workers = 100_001 }), []string{"workers 100001: must be 1 to 100000"}},
		"negative workers":             {with(func(c *Config) { c.Workers = -1 }), []string{"workers -1"}},
		"gossip without a port":        {with(func(c *Config) { c.Gossip = "127.0.0.1" }), []string{`gossip "127.0.0.1": must be HOST:PORT or off`}},
		"gossip off":                   {with(func(c *Config) { c.Gossip = "off" }), nil},
		"an empty seed":                {with(func(c *Config) { c.Join = []string{""} }), []string{`join ""`}},
		"http without a port":          {with(func(c *Config) { c.HTTP = "localhost" }), []string{`http "localhost": must be HOST:PORT`}},
		"an unknown preset":            {with(func(c *Config) { c.Preset = "slow" }), []string{"must be fast, lan or wan"}},
		"a heartbeat too short":        {with(func(c *Config) { c.Heartbeat = time.Millisecond }), []string{"heartbeat 1ms: must be 50ms to 1m"}},
		"silence below two heartbeats": {with(func(c *Config) { c.Silence = 900 * time.Millisecond }), []string{"silence 900ms: must be at least 2 heartbeats of 500ms"}},
		"a lease below twice silence":  {with(func(c *Config) { c.Lease = 3 * time.Second }), []string{"lease 3s: must be at least 2 times the silence of 2s"}},
		"silence and lease":            {with(func(c *Config) { c.Silence, c.Lease = 900*time.Millisecond, time.Second }), []string{"silence 900ms", "lease 1s"}},
		"a negative drain timeout":     {with(func(c *Config) { c.DrainTimeout = -1 }), []string{"drain timeout -1ns: must not be negative"}},
		"every fault in one error": {
			Config{Prefix: "{", Name: "ä", Queues: []Queue{{"", 1001}}, Workers: -5, Gossip: "x", Join: []string{"a b"}, HTTP: "y", Preset: "z", Heartbeat: time.Hour, DrainTimeout: -1},
			[]string{"redis:", "prefix", "name", "queue", "weight 1001", "workers -5", "gossip", "join", "http", "preset", "heartbeat", "drain timeout"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.config.Check()
			if (err == nil) != (tt.want == nil) || err != nil && !errors.Is(err, ErrConfig) {
				t.Fatalf("%v, want an ErrConfig with %q", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v: does not name %q", err, part)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: shows the password", err)
			}
			if _, made := New(tt.config); (made == nil) != (err == nil) {
				t.Errorf("New returns %v, Check %v", made, err)
			}
		})
	}
}

func TestRunRefusesHandlersThatCannotBe(t *testing.T) {
	t.Parallel()
	n, err := New(Config{Redis: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		Handle(n, raw, func(context.Context, *queue.Job[[]byte]) error { return nil })
	}
	n.handle("a kind", nil)
	err = n.Run(context.Background())
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), `kind "raw": has two handlers`) || !strings.Contains(err.Error(), "a kind") {
		t.Errorf("Run returned %v, want both faults", err)
	}
}

func TestRunRefusesARedisThatThrowsJobsAway(t *testing.T) {
	t.Parallel()
	h, server := ownHerd(t)
	server.Config("maxmemory-policy", "allkeys-lru")
	n, err := New(h.config("n1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(context.Background()); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("Run returned %v, want ErrConfig that names the policy", err)
	}
	c := h.config("n2")
	c.AllowEviction = true
	h.startWorking(c)
	id := h.do(work{})
	eventually(t, patience, "it runs where that is allowed", func() bool { return len(h.ledger.starts(id)) == 1 })
}

func TestRunEndsWhereAPasswordIsRefused(t *testing.T) {
	t.Parallel()
	h, server := ownHerd(t)
	server.Config("requirepass", "secret")
	n, err := New(h.config("n1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(context.Background()); !errors.Is(err, queue.ErrRefused) {
		t.Errorf("Run returned %v, want ErrRefused", err)
	}
}
