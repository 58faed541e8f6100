package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bounds of one flight: what a script does in one step.
const (
	flightItems = 500
	flightBytes = 1 << 20
	tryTimeout  = 3 * time.Second // of one round trip
)

// registeredFor is how long a lane believes that its queue is registered. A
// connection that broke while idle is replaced without an error, so that a Redis
// that lost its data is noticed by nothing else.
const registeredFor = time.Minute

// lane is this client's way to one queue: one command in flight, each with a
// rising turn. What callers bring meanwhile travels with the next one, without
// any timer: an idle lane sends at once, a busy one sends big batches.
type lane struct {
	c     *Client
	queue string

	mu      sync.Mutex
	waiting []*command
	busy    bool // a goroutine flies

	turn  int64     // of the flying goroutine, as is
	known time.Time // when the queue was put into the registry; zero: not yet, or another Redis may answer
}

// command is what one caller wants done. After done is closed, outcomes and err
// belong to the caller.
type command struct {
	script   *script
	args     []any // behind client, turn and age
	items    int   // outcomes that it expects, one letter each; 0: the whole text
	bytes    int
	replicas int

	gone     atomic.Bool // the caller has left
	done     chan struct{}
	outcomes string
	err      error
}

func (c *Client) lane(queue string) *lane {
	if l, ok := c.lanes.Load(queue); ok {
		return l.(*lane)
	}
	l, _ := c.lanes.LoadOrStore(queue, &lane{c: c, queue: queue})
	return l.(*lane)
}

// do sends a command and waits for its outcomes. When ctx ends first, a command
// that has not left yet is taken back; one that has is unknown.
func (l *lane) do(ctx context.Context, m *command) (string, error) {
	if ctx.Err() != nil {
		return "", neverSent(ctx)
	}
	m.done = make(chan struct{})
	if err := l.put(m); err != nil {
		return "", err
	}
	select {
	case <-m.done:
		return m.outcomes, m.err
	case <-ctx.Done():
	}
	if l.takeBack(m) {
		return "", neverSent(ctx)
	}
	m.gone.Store(true)
	select {
	case <-m.done: // at the same moment
		return m.outcomes, m.err
	default:
		return "", fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
}

func (l *lane) put(m *command) error {
	l.c.gate.RLock()
	defer l.c.gate.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.c.closed:
		return ErrClosed
	default:
	}
	l.waiting = append(l.waiting, m)
	if !l.busy {
		l.busy = true
		l.c.flying.Add(1)
		go l.fly()
	}
	return nil
}

func (l *lane) takeBack(m *command) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == m {
			l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// fly sends what waits until nothing does.
func (l *lane) fly() {
	defer l.c.flying.Done()
	for {
		batch := l.take()
		if batch == nil {
			return
		}
		l.send(batch)
	}
}

// take returns commands of one script that fit in one flight.
func (l *lane) take() []*command {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, items, bytes := 0, 0, 0
	for _, m := range l.waiting {
		first := l.waiting[0]
		items, bytes = items+m.items, bytes+m.bytes
		if n > 0 && (m.script != first.script || m.items == 0 || first.items == 0 || items > flightItems || bytes > flightBytes) {
			break
		}
		n++
	}
	if n == 0 {
		l.busy, l.waiting = false, nil
		return nil
	}
	batch := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	return batch
}

// send gives the batch one turn and repeats it, with the same content, until its
// outcome is known, patience ends or every caller has left.
func (l *lane) send(batch []*command) {
	outcomes, err := l.decide(batch)
	for _, m := range batch {
		m.err = err
		if n := m.items; err == nil || outcomes != "" {
			if n == 0 {
				n = len(outcomes)
			}
			if n > len(outcomes) {
				m.err = fmt.Errorf("%w: the outcomes of this turn are not kept", ErrUnknown)
				n = len(outcomes)
			}
			m.outcomes, outcomes = outcomes[:n], outcomes[n:]
		}
		close(m.done)
	}
}

func (l *lane) decide(batch []*command) (string, error) {
	ctx := context.Background() // each round trip has its own bound
	l.turn++
	args, err := l.frame(ctx, batch)
	if err != nil {
		return "", err
	}
	replicas := 0
	for _, m := range batch {
		replicas = max(replicas, m.replicas)
	}
	until, unknown := time.Now().Add(l.c.opts.Patience), false
	for try := 0; ; try++ {
		r, err := l.round(ctx, batch[0].script, args, replicas, unknown)
		if r != nil {
			l.c.clock.saw(r.int(1))
			return l.answer(r, err)
		}
		l.known = time.Time{} // the connection broke, or another Redis answers
		_, definite := explain(err)
		if definite && !unknown {
			return "", err
		}
		unknown = true
		if time.Now().After(until) || abandoned(batch) || !l.pause(try) {
			return "", fmt.Errorf("%w: %w", ErrUnknown, err)
		}
	}
}

// frame puts client, turn and age before the content. Nothing of it changes in a
// repeat.
func (l *lane) frame(ctx context.Context, batch []*command) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	if time.Since(l.known) >= registeredFor {
		if err := l.c.Register(ctx, l.queue); err != nil {
			return nil, notSent(err)
		}
		l.known = time.Now()
	}
	age, err := l.c.stamp(ctx)
	if err != nil {
		return nil, notSent(err)
	}
	args := []any{l.c.id, l.turn, age}
	for _, m := range batch {
		args = append(args, m.args...)
	}
	return args, nil
}

// round is one round trip. A reply with an error is an unconfirmedError.
func (l *lane) round(ctx context.Context, s *script, args []any, replicas int, again bool) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	keys := l.c.keys.list(l.queue, s.keys)
	if replicas == 0 {
		return s.run(ctx, l.c.rdb, keys, args)
	}
	var call *redis.Cmd
	var wait, touch *redis.IntCmd
	for _, text := range []bool{false, true} {
		pipe := l.c.rdb.Pipeline() // WAIT counts what its own connection wrote
		if text {
			call = s.lua.Eval(ctx, pipe, keys, args...)
		} else {
			call = pipe.EvalSha(ctx, s.lua.Hash(), keys, args...)
		}
		if again { // the script may have nothing left to write
			touch = pipe.HIncrBy(ctx, l.c.keys.of(l.queue, "meta"), "enqueued", 0)
		}
		wait = redis.NewIntCmd(ctx, "wait", replicas, (tryTimeout / 2).Milliseconds())
		_ = pipe.Process(ctx, wait)
		_, _ = pipe.Exec(ctx)
		if !isNoScript(call.Err()) {
			break
		}
	}
	v, err := call.Result()
	if err != nil {
		return nil, err
	}
	r, err := asReply(s.name, v)
	if err != nil {
		return nil, err
	}
	if touch != nil && touch.Err() != nil {
		return r, &unconfirmedError{0}
	}
	if n, err := wait.Result(); err != nil || n < int64(replicas) {
		return r, &unconfirmedError{int(n)}
	}
	return r, nil
}

func (l *lane) answer(r reply, err error) (string, error) {
	switch r.word() {
	case "OK":
		return r.str(2), err
	case "OLD":
		return "", fmt.Errorf("%w: the command was more than 5 min old when Redis got it", ErrUnknown)
	}
	return "", fmt.Errorf("%w: %w", ErrUnknown, ErrStale)
}

func abandoned(batch []*command) bool {
	for _, m := range batch {
		if !m.gone.Load() {
			return false
		}
	}
	return true
}

// pause waits before a repeat, with jitter; false when the client closes.
func (l *lane) pause(try int) bool {
	most := min(50*time.Millisecond<<min(try, 5), time.Second)
	timer := time.NewTimer(most/2 + rand.N(most/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.c.closed:
		return false
	}
}
