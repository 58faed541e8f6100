package queue

import (
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

// Options tunes a Client. The zero value suits production.
type Options struct {
	Prefix     string         // of every key; default "kelpie"
	MaxPayload int            // bytes; larger ones are refused by Enqueue; default 1 MiB
	Patience   time.Duration  // how long a command with an unknown result is repeated; default 10 s
	Log        zerolog.Logger // default: silent
}

// DefaultMaxPayload is the largest payload in bytes unless Options say otherwise.
const DefaultMaxPayload = 1 << 20

// Client is a view of one job space and a sender of commands to it. It is safe
// for concurrent use; concurrent calls share round trips.
type Client struct {
	rdb    redis.UniversalClient
	opts   Options
	keys   spaceKeys
	id     string   // as a sender
	lanes  sync.Map // queue -> *lane
	clock  serverClock
	flying sync.WaitGroup
	gate   sync.RWMutex // held while flying grows, and while closed closes
	closed chan struct{}
	once   sync.Once
}

// New returns a client of the job space behind rdb. It does no I/O and starts
// no goroutine; rdb stays the caller's to close. ParseURL has the settings that
// suit it; with others it is as safe, but slower to notice faults.
func New(rdb redis.UniversalClient, o Options) (*Client, error) {
	o.Prefix = or(o.Prefix, "kelpie")
	o.MaxPayload = or(o.MaxPayload, DefaultMaxPayload)
	o.Patience = or(o.Patience, 10*time.Second)
	if err := CheckName("prefix", o.Prefix); err != nil {
		return nil, err
	}
	return &Client{rdb: rdb, opts: o, keys: spaceKeys{o.Prefix}, id: senderID(), closed: make(chan struct{})}, nil
}

// senderID is short, since each queue keeps it: 128 random bits would be too
// many, 62 of a UUID's are plenty among the senders of 20 minutes.
func senderID() string { return "c" + uuid.NewString()[19:] }

// Close refuses new commands and waits for those in flight. It does not close
// the connection to Redis.
func (c *Client) Close() error {
	c.once.Do(func() {
		c.gate.Lock()
		defer c.gate.Unlock()
		close(c.closed)
	})
	c.flying.Wait()
	return nil
}
