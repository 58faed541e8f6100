package proxy

import (
	"context"
	"errors"
	"time"
)

// Proxy passes connections on to Redis. Its methods are safe for concurrent use.
type Proxy struct{}

// Way is the state of one direction. The zero value passes all at once.
type Way struct {
	Blocked bool          // nothing passes until the way is set anew; then it all does, in order
	Lost    bool          // with Blocked: what was held is thrown away then, and its connections are reset
	Delay   time.Duration // each command or reply takes so much longer; throughput stays
}

// Listen takes the address; port 0 takes a free one below those that the kernel
// gives to clients. upstream tells where Redis is, for each connection anew.
// Nothing is accepted before Run.
func Listen(addr string, upstream func() string, names *Names) (*Proxy, error) {
	return nil, errors.ErrUnsupported
}

// Addr is host:port, the same over Cut and Mend.
func (p *Proxy) Addr() string { return "" }

// Run serves until ctx ends, then closes all connections and the address.
func (p *Proxy) Run(ctx context.Context) error { return errors.ErrUnsupported }

// SetUp sets the way from clients to Redis, also of connections that are there.
func (p *Proxy) SetUp(w Way) {}

// SetDown sets the way from Redis to clients.
func (p *Proxy) SetDown(w Way) {}

// Cut resets all connections and refuses new ones until Mend. What was held on
// them is lost.
func (p *Proxy) Cut() {}

// Mend takes the address again. An error means that somebody else has it now.
func (p *Proxy) Mend() error { return errors.ErrUnsupported }

// Aim lies in wait for commands. Of several shots at the same command the oldest
// hits.
func (p *Proxy) Aim(s Shot) *Aimed { return &Aimed{} }
