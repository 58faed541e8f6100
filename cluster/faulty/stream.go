package faulty

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Dial connects by the rules: for cluster.Config. Where no packet passes there
// is no answer until ctx ends.
func (r *Rules) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if !r.await(ctx, addr, connects) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: context.Cause(ctx)}
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// await waits as long as a passage takes. It returns false when ctx ends first.
// A cut that heals meanwhile is noticed at the next repetition.
func (r *Rules) await(ctx context.Context, addr string, t trip) bool {
	for {
		wait, passes := r.passage(addr, t)
		if passes && wait == 0 {
			return ctx.Err() == nil
		}
		if !passes {
			wait = sendAgain
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		if passes {
			return true
		}
	}
}

// DialAddressTimeout opens a stream by the rules.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.life, timeout)
	defer cancel()
	if !t.rules.await(ctx, a.Addr, connects) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	conn, err := t.NodeAwareTransport.DialAddressTimeout(a, timeout-time.Since(begun))
	if err != nil {
		return nil, err
	}
	s := &stream{Conn: conn, rules: t.rules, addr: a.Addr, limit: timeout}
	s.life, s.end = context.WithCancel(t.life)
	return s, nil
}

// stream is a connection that this node opened. What it writes and what it reads
// after that wait for their passage.
type stream struct {
	net.Conn
	rules *Rules
	addr  string

	limit time.Duration   // of a wait without deadline, which a kernel's buffer would have taken
	life  context.Context // ends when it is closed, or the transport is
	end   context.CancelFunc

	mu       sync.Mutex
	deadline [2]time.Time // for reads, for writes; zero: none
	asked    bool         // something was written since the last read
}

const reads, writes = 0, 1

func (s *stream) Write(b []byte) (int, error) {
	if err := s.pass(writes); err != nil {
		return 0, err
	}
	return s.Conn.Write(b)
}

func (s *stream) Read(b []byte) (int, error) {
	if err := s.pass(reads); err != nil {
		return 0, err
	}
	return s.Conn.Read(b)
}

// pass waits as the rules say, for the deadline at most. The answer to several
// writes needs one passage.
func (s *stream) pass(side int) error {
	s.mu.Lock()
	deadline, t := s.deadline[side], goesOn
	switch {
	case side == writes:
		t = sends
	case s.asked:
		t = receives
	}
	s.asked = side == writes
	s.mu.Unlock()
	if deadline.IsZero() {
		deadline = time.Now().Add(s.limit)
	}
	ctx, cancel := context.WithDeadline(s.life, deadline)
	defer cancel()
	if s.rules.await(ctx, s.addr, t) {
		return nil
	}
	err := net.ErrClosed
	if s.life.Err() == nil {
		err = os.ErrDeadlineExceeded
	}
	return &net.OpError{Op: [...]string{"read", "write"}[side], Net: "tcp", Err: err}
}

func (s *stream) SetDeadline(t time.Time) error {
	s.mu.Lock()
	s.deadline = [2]time.Time{t, t}
	s.mu.Unlock()
	return s.Conn.SetDeadline(t)
}

func (s *stream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	s.deadline[reads] = t
	s.mu.Unlock()
	return s.Conn.SetReadDeadline(t)
}

func (s *stream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	s.deadline[writes] = t
	s.mu.Unlock()
	return s.Conn.SetWriteDeadline(t)
}

func (s *stream) Close() error {
	s.end()
	return s.Conn.Close()
}
