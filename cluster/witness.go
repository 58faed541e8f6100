package cluster

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// Evidence is what a TCP connect to a member's gossip address showed.
type Evidence string

// The verdicts of Witness.
const (
	Refused  Evidence = "refused"   // nothing listens there any more
	NoAnswer Evidence = "no answer" // nothing came back in time, or the host is unreachable
	Accepted Evidence = "accepted"  // a sign of life, even if nothing follows
	Unfit    Evidence = "unfit"     // no evidence: never reached before, or the attempt failed on this side
)

// Enough says whether the evidence supports that the session is gone, given
// what Dead says of it. Ask only while Reaches holds for some other session
// whose beat is fresh, if there is one.
func (e Evidence) Enough(dead bool) bool {
	return e == Refused || e == NoAnswer && dead
}

const (
	maxMet     = 4096            // sessions remembered; above, the one tried longest ago is forgotten
	meetAgain  = 2 * time.Second // after an attempt that failed
	meetQueue  = 256
	meetersRun = 4
)

// acquaintances remembers which sessions were reached, and where.
type acquaintances struct {
	mu    sync.Mutex
	met   map[string]acquaintance // by session
	queue chan string             // sessions to connect to
}

type acquaintance struct {
	addr    string
	reached bool
	tried   time.Time
}

func newAcquaintances() *acquaintances {
	return &acquaintances{met: map[string]acquaintance{}, queue: make(chan string, meetQueue)}
}

// Meet has Run connect once to a session's gossip address, so that this node
// can be a witness later. It returns at once and may be called at every sight:
// a session already reached there costs nothing, a failed attempt is repeated
// after 2 s at the soonest. Members are met without being asked for.
func (c *Cluster) Meet(session, addr string) { c.met.ask(session, addr, time.Now()) }

func (a *acquaintances) ask(session, addr string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old, known := a.met[session]
	if known && old.addr == addr && (old.reached || now.Sub(old.tried) < meetAgain) {
		return
	}
	select {
	case a.queue <- session:
		a.put(session, acquaintance{addr: addr, tried: now})
	default: // so many at once: at the next sight
	}
}

// put needs the lock.
func (a *acquaintances) put(session string, with acquaintance) {
	a.met[session] = with
	if len(a.met) <= maxMet {
		return
	}
	oldest, at := "", with.tried
	for s, m := range a.met {
		if s != session && !m.tried.After(at) {
			oldest, at = s, m.tried
		}
	}
	delete(a.met, oldest)
}

func (a *acquaintances) get(session string) acquaintance {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.met[session]
}

func (a *acquaintances) reached(session, addr string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, ok := a.met[session]; ok && m.addr == addr {
		m.reached = true
		a.met[session] = m
	}
}

// meet works off the queue until ctx ends.
func (c *Cluster) meet(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case session := <-c.met.queue:
			if addr := c.met.get(session).addr; addr != "" && c.Reaches(ctx, addr) {
				c.met.reached(session, addr)
			}
		}
	}
}

// Witness connects to the session's gossip address and says what that showed.
// It takes at most the preset's time (fast 500 ms, lan 1 s, wan 3 s). Only a
// node that has reached the session at this address before is a witness.
func (c *Cluster) Witness(ctx context.Context, session, addr string) Evidence {
	if m := c.met.get(session); !m.reached || m.addr != addr {
		return Unfit
	}
	err := c.connect(ctx, addr)
	if ctx.Err() != nil && err != nil {
		return Unfit // the caller gave up, which says nothing about the other side
	}
	return judge(err)
}

// Reaches says that addr accepts a connection now: the control for a witness,
// asked of a session whose beat is fresh. It takes as long as Witness at most.
func (c *Cluster) Reaches(ctx context.Context, addr string) bool {
	return c.connect(ctx, addr) == nil
}

// judge reads the error of a connect. What failed on this side (no socket, no
// route from here, a local rule) is no evidence.
func judge(err error) Evidence {
	var timeout net.Error
	switch {
	case err == nil:
		return Accepted
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EHOSTDOWN),
		errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return NoAnswer
	default:
		return Unfit
	}
}

// connect opens a connection and closes it again. The label goes first: a
// memberlist that reads it and then the end closes without a word, else each
// visit would be an error in its log.
func (c *Cluster) connect(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.tune.connect)
	defer cancel()
	conn, err := c.cfg.Dial(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_ = memberlist.AddLabelHeaderToStream(conn, c.cfg.Label) // courtesy only
	_ = conn.Close()
	return nil
}
