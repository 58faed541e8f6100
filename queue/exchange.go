package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Session is the claim side of one incarnation of a node. For each queue it has
// one exchange in flight; different queues may run at the same time.
type Session struct {
	c  *Client
	id string

	mu    sync.Mutex
	turns map[string]*turn
}

// turn counts the commands to one queue.
type turn struct {
	busy sync.Mutex // one command in flight
	n    int64
}

// Session returns the claim side for a session id, which must be new at every
// start of a node. It does no I/O.
func (c *Client) Session(id string) (*Session, error) {
	if err := CheckName("session", id); err != nil {
		return nil, err
	}
	return &Session{c: c, id: id, turns: map[string]*turn{}}, nil
}

// ID returns the session id.
func (s *Session) ID() string { return s.id }

func (s *Session) turn(queue string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[queue] == nil {
		s.turns[queue] = &turn{}
	}
	return s.turns[queue]
}

// Exchange is what a node has for a queue and wants of it. The settlements stay
// the caller's, who must not change them until the answer came.
type Exchange struct {
	Settle []*Settlement
	Want   int  // claims, at most
	Risky  bool // may get one job that had two stalls
	Bye    bool // the last one of this session
	Bytes  int  // bound of the bodies claimed, at least one job; default 1 MiB
}

// Exchanged is the answer.
type Exchanged struct {
	Verdicts []Verdict // of each settlement
	Claims   []*Claim
	Gone     bool          // the session was declared dead: nothing was claimed
	Paused   bool          // the queue gives nothing out until it is resumed
	Cancel   []string      // ids that this session runs and that shall end
	Backlog  int           // jobs that wait
	Next     time.Duration // until the next delayed job is due; negative if none is
	At       time.Time     // by Redis's clock
}

// MaxSettle is how many settlements an Exchange may carry.
const MaxSettle = 500

// Exchange settles and claims in one round trip. ErrStale: a later turn was
// seen already, nothing was done. IsUnknown errors: it may have been applied;
// the caller settles again (Settlement.Again), claims nothing in the next
// exchange, and holds a roll call after it.
func (s *Session) Exchange(ctx context.Context, queue string, x Exchange) (*Exchanged, error) {
	if len(x.Settle) > MaxSettle {
		return nil, wrap("exchange", queue, "", fmt.Errorf("%d settlements: must be at most %d%w", len(x.Settle), MaxSettle, bad))
	}
	t := s.turn(queue)
	t.busy.Lock()
	defer t.busy.Unlock()
	t.n++
	args := make([]any, 0, 6+6*len(x.Settle))
	args = append(args, s.id, t.n, max(x.Want, 0), flag(x.Bye), flag(x.Risky), or(x.Bytes, flightBytes))
	for _, one := range x.Settle {
		args = one.args(args)
	}
	r, err := exchangeScript.run(ctx, s.c.rdb, s.c.keys.list(queue, exchangeScript.keys), args)
	if err != nil {
		return nil, wrap("exchange", queue, "", err)
	}
	s.c.clock.saw(r.int(1))
	if r.word() == "STALE" {
		return nil, wrap("exchange", queue, "", ErrStale)
	}
	return s.exchanged(queue, r, len(x.Settle))
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func (s *Session) exchanged(queue string, r reply, settled int) (*Exchanged, error) {
	verdicts, claims := r.str(2), r.list(3)
	if len(verdicts) != settled || len(claims)%4 != 0 {
		return nil, &OpError{Op: "exchange", Queue: queue, Err: fmt.Errorf("%w: reply not understood", ErrUnknown)}
	}
	out := &Exchanged{
		Verdicts: []Verdict(verdicts), Gone: r.word() == "GONE", Paused: r.str(4) != "",
		Claims: make([]*Claim, 0, len(claims)/4), Backlog: int(r.int(6)), Next: -1, At: time.UnixMilli(r.int(1)).UTC(),
	}
	for i := 0; i < len(claims); i += 4 {
		out.Claims = append(out.Claims, newClaim(queue, s.id, claims.str(i), claims.str(i+1), []byte(claims.str(i+2)), claims.str(i+3)))
	}
	for i := range r.list(5) {
		out.Cancel = append(out.Cancel, r.list(5).str(i))
	}
	if next := r.str(7); next != "" {
		out.Next = max(time.Duration(parseInt(next)-r.int(1))*time.Millisecond, 0)
	}
	return out, nil
}

// Held returns the tokens that this session has in a queue, by job id. Only
// after an answered exchange, and with none in flight, it is the whole truth.
func (s *Session) Held(ctx context.Context, queue string) (map[string]string, error) {
	t := s.turn(queue)
	t.busy.Lock()
	defer t.busy.Unlock()
	held := map[string]string{}
	for entry, err := range s.c.active(ctx, queue) {
		if err != nil {
			return nil, err
		}
		if entry.session == s.id {
			held[entry.id] = entry.token
		}
	}
	return held, nil
}

// HandBack returns a settlement that releases a job which this session holds
// and does not run; id and token are from Held. The job's class is unknown
// here: it goes to the head of the default priority unless its body says more.
func (s *Session) HandBack(ctx context.Context, queue, id, token string) (*Settlement, error) {
	body, err := s.c.rdb.HGet(ctx, s.c.keys.of(queue, "jobs"), id).Bytes()
	if err != nil && !isNil(err) {
		return nil, wrap("roll call", queue, id, err)
	}
	fence, _, _ := cutToken(token)
	claim := newClaim(queue, s.id, id, fence, body, "")
	if claim.broken != nil {
		claim.Priority = DefaultPriority
	}
	return claim.Released(), nil
}

// Lookup says which of these claims this session still holds.
func (s *Session) Lookup(ctx context.Context, queue string, claims []*Claim) ([]bool, error) {
	held := make([]bool, len(claims))
	if len(claims) == 0 {
		return held, nil
	}
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = c.ID
	}
	tokens, err := s.c.rdb.HMGet(ctx, s.c.keys.of(queue, "active"), ids...).Result()
	if err != nil {
		return nil, wrap("roll call", queue, "", err)
	}
	for i, c := range claims {
		held[i] = tokens[i] == c.token
	}
	return held, nil
}

// Token returns the token of a claim, as Held has it.
func (c *Claim) Token() string { return c.token }

var errToken = errors.New("token not understood")
