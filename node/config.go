package node

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/cluster"
	"github.com/kelpiehq/kelpie/queue"
	"github.com/kelpiehq/kelpie/sweeper"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

// Queue is a queue that a node serves.
type Queue struct {
	Name   string
	Weight int // its share of the slots while others have work too; default 1
}

// Config says what a node serves and how. Only Redis is required.
type Config struct {
	Redis  string // redis://, rediss://, unix:// or redis+sentinel://: see queue.Connect
	Prefix string // of the job space, and the label of gossip; default "kelpie"
	Name   string // of the node, [A-Za-z0-9._-]{1,80}; default the host's

	Queues  []Queue // default one, "default"
	Strict  bool    // serve queues in their order instead of by weight: a later one starves while an earlier one has work
	Workers int     // handlers at a time, over all queues; default 10

	Gossip string   // "HOST:PORT"; default the local address of the connection to Redis; "off": none
	Join   []string // "HOST:PORT" of other nodes, besides those that Redis knows
	Preset string   // of gossip's failure detection: fast (default), lan or wan
	// Links is a file of rules by which gossip drops, delays and repeats what it
	// sends: for tests of faults, see package cluster/faulty. Default none.
	Links string

	HTTP     string // "HOST:PORT" of /livez, /readyz and /metrics; default off
	StateDir string // keeps who ran here, so that a restart recovers at once; default none

	Heartbeat    time.Duration // default 0.5 s
	Silence      time.Duration // without a beat, and with a witness, a node is declared dead; default 2 s
	Lease        time.Duration // without a witness; default 15 s
	DrainTimeout time.Duration // how long handlers may finish when the node stops; default 25 s

	AllowEviction bool // start on a Redis whose maxmemory-policy throws jobs away

	Version string          // shown to others; default that of the main module
	Log     zerolog.Logger  // default silent
	Abort   <-chan struct{} // closed: hand back at once, Run returns ErrAborted

	cluster func(*cluster.Config) // tests put faults between nodes
	redis   func(*redis.Options)  // tests put faults between a node and Redis
	witness sweeper.Witness       // tests say who is gone; nil: gossip does
}

// Errors of Run.
var (
	ErrConfig  = errors.New("bad configuration")
	ErrAborted = errors.New("cut short: jobs that ran were handed back")
)

func (c Config) filled() Config {
	c.Prefix = or(c.Prefix, "kelpie")
	c.Name = or(c.Name, hostName())
	c.Workers = or(c.Workers, 10)
	c.Heartbeat = or(c.Heartbeat, 500*time.Millisecond)
	c.Silence = or(c.Silence, 2*time.Second)
	c.Lease = or(c.Lease, 15*time.Second)
	c.DrainTimeout = or(c.DrainTimeout, 25*time.Second)
	c.Preset = or(c.Preset, string(cluster.Fast))
	c.Version = or(c.Version, buildVersion())
	if len(c.Queues) == 0 {
		c.Queues = []Queue{{Name: queue.DefaultQueue}}
	}
	queues := make([]Queue, len(c.Queues))
	for i, q := range c.Queues {
		queues[i] = Queue{q.Name, or(q.Weight, 1)}
	}
	c.Queues = queues
	return c
}

// Check names every fault at once, each as field, value and rule. The error is
// an ErrConfig.
func (c Config) Check() error {
	c = c.filled()
	var faults []string
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }
	add := func(err error) {
		if err != nil {
			fault("%v", err)
		}
	}
	if c.Redis == "" {
		fault("redis: an address is needed, such as redis://127.0.0.1:6379")
	} else {
		add(queue.CheckURL(c.Redis))
	}
	add(queue.CheckName("prefix", c.Prefix))
	add(queue.CheckName("name", c.Name))
	if len(c.Name) > maxName {
		fault("name %q: must be at most %d characters", c.Name, maxName)
	}
	c.checkQueues(fault, add)
	c.checkAddresses(fault)
	c.checkTimes(fault)
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrConfig, strings.Join(faults, "; "))
}

// maxName leaves room for the boot suffix in a session id.
const maxName = 80

func (c Config) checkQueues(fault func(string, ...any), add func(error)) {
	seen := map[string]bool{}
	for _, q := range c.Queues {
		add(queue.CheckName("queue", q.Name))
		if q.Weight < 1 || q.Weight > 1000 {
			fault("queue %s weight %d: must be 1 to 1000", q.Name, q.Weight)
		}
		if seen[q.Name] {
			fault("queue %s: is named twice", q.Name)
		}
		seen[q.Name] = true
	}
	if c.Workers < 1 || c.Workers > 100_000 {
		fault("workers %d: must be 1 to 100000", c.Workers)
	}
}

func (c Config) checkAddresses(fault func(string, ...any)) {
	if c.Gossip != "" && c.Gossip != gossipOff {
		if _, _, err := net.SplitHostPort(c.Gossip); err != nil {
			fault("gossip %q: must be HOST:PORT or off", c.Gossip)
		}
	}
	for _, j := range c.Join {
		if j == "" || strings.ContainsAny(j, " /") {
			fault("join %q: must be HOST or HOST:PORT", j)
		}
	}
	if c.HTTP != "" {
		if _, _, err := net.SplitHostPort(c.HTTP); err != nil {
			fault("http %q: must be HOST:PORT", c.HTTP)
		}
	}
	switch cluster.Preset(c.Preset) {
	case cluster.Fast, cluster.LAN, cluster.WAN:
	default:
		fault("gossip preset %q: must be fast, lan or wan", c.Preset)
	}
}

func (c Config) checkTimes(fault func(string, ...any)) {
	if c.Heartbeat < 50*time.Millisecond || c.Heartbeat > time.Minute {
		fault("heartbeat %v: must be 50ms to 1m", c.Heartbeat)
	} else if c.Silence < 2*c.Heartbeat {
		fault("silence %v: must be at least 2 heartbeats of %v", c.Silence, c.Heartbeat)
	}
	if c.Lease < 2*c.Silence {
		fault("lease %v: must be at least 2 times the silence of %v", c.Lease, c.Silence)
	}
	if c.DrainTimeout < 0 {
		fault("drain timeout %v: must not be negative", c.DrainTimeout)
	}
}

// gossipOff is the address that turns gossip off.
const gossipOff = "off"

var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func hostName() string {
	h, _ := os.Hostname()
	h = strings.Trim(notInName.ReplaceAllString(h, "-"), "-.")
	return or(h[:min(len(h), maxName)], "node")
}

func buildVersion() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}

// newSession returns a session id: the node's name and a suffix that is new at
// every start.
func newSession(name string) string {
	var random [6]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return name + "-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
