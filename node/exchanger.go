package node

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kelpiehq/kelpie/queue"
	"github.com/rs/zerolog"
)

const (
	maxClaims     = 500                    // of one exchange
	callTimeout   = 3 * time.Second        // of one exchange
	keepInTouch   = time.Second            // an exchange at least so often while jobs run, so that cancels arrive
	netAfter      = 110 * time.Millisecond // behind a due time: the exchange itself promotes what is 100 ms late
	firstPause    = 50 * time.Millisecond  // after a failed exchange; it doubles
	longestPause  = time.Second            //
	claimlessRest = time.Second            // a queue that had jobs and gave none (paused, at its limit) is left alone so long, for each such queue
	asideRest     = 10 * time.Millisecond  // the same where its backlog shrank: what stood first was put aside
)

// exchanger runs one queue of one incarnation: one exchange in flight, which
// takes along all that finished meanwhile. Only its own goroutine talks to the
// queue; handlers leave their settlements and ring.
type exchanger struct {
	in      *incarnation
	queue   string
	seat    *seat
	running *running
	log     zerolog.Logger

	mu      sync.Mutex
	decided []*queue.Settlement // to be sent
	bell    chan struct{}       // one slot: something was decided, or the state changed

	must      atomic.Bool  // a wake token was taken: exchange, whatever the slots
	served    atomic.Bool  // the queue gave this session jobs
	rollCall  atomic.Bool  // asked for by the roll caller, or after a reconnection
	lookUp    atomic.Bool  //
	used      atomic.Bool  // it had jobs since the last look-up
	failing   atomic.Bool  // the last exchange or roll call failed
	quietTill atomic.Int64 // it had jobs and gave none: until then, counted from the birth of the incarnation, only a wake token makes it ask again
	busy      atomic.Int64 // since when the loop works, counted from the birth of the incarnation; 0 while it waits

	// of the loop alone
	barrier  bool                       // an exchange ended unknown: claim nothing until a roll call
	failures int                        // exchanges in a row
	uncalled int                        // roll calls and look-ups that failed, in a row
	again    map[*queue.Settlement]bool // may have been applied already
	backlog  int                        // as last told
	restTill time.Time                  // after a failure
	last     time.Time                  // of the last answered exchange
	next     time.Time                  // when to look for due jobs, zero if none is known
	quietFor time.Time                  // a queue that gave nothing
	parting  bool                       // the last roll call was asked for
	parted   bool                       // bye was sent, and its result is unknown
	said     atomic.Bool                // bye
}

func newExchanger(in *incarnation, s *seat) *exchanger {
	return &exchanger{
		in: in, queue: s.queue, seat: s, running: newRunning(), bell: make(chan struct{}, 1),
		again: map[*queue.Settlement]bool{}, backlog: math.MaxInt,
		log: in.log.With().Str("queue", s.queue).Logger(),
	}
}

// run exchanges until the incarnation is over for this queue: after a last roll
// call and "bye", or, when the session is lost, when all that ran has been
// answered. ctx is the hard end.
func (e *exchanger) run(ctx context.Context) {
	for e.await(ctx) {
		e.busy.Store(int64(time.Since(e.in.born)))
		e.round(ctx)
		e.busy.Store(0)
	}
}

// await blocks until there is a reason for an exchange; false when the loop is
// over.
func (e *exchanger) await(ctx context.Context) bool {
	for {
		if ctx.Err() != nil || e.over() {
			return false
		}
		wait := e.reason(time.Now())
		if wait <= 0 {
			return true
		}
		claims := e.seat.bell
		if !e.in.claiming() {
			claims = nil // another incarnation may want it
		}
		timer := time.NewTimer(wait)
		select {
		case <-e.bell:
		case <-claims:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// over reports that nothing is left to do: the last exchange was "bye", or the
// session is lost and nothing runs.
func (e *exchanger) over() bool {
	if e.in.phase() == phaseGone {
		return e.running.len() == 0 && e.undelivered() == 0
	}
	return e.said.Load()
}

// reason says how long to wait before the next exchange; 0 is now.
func (e *exchanger) reason(now time.Time) time.Duration {
	if rest := e.restTill.Sub(now); rest > 0 {
		return rest
	}
	wait, phase := time.Hour, e.in.phase()
	switch {
	case e.undelivered() > 0, phase == phaseHandBack:
		return 0
	case phase == phaseGone:
		return wait
	case e.must.Load(), e.barrier, e.rollCall.Load(), e.lookUp.Load():
		return 0
	}
	if e.running.len() > 0 {
		wait = min(wait, e.last.Add(keepInTouch).Sub(now))
	}
	if e.in.claiming() && e.in.n.pool.could(e.seat) {
		if e.in.n.pool.isHungry(e.seat) {
			return 0
		}
		if !e.next.IsZero() {
			wait = min(wait, e.next.Sub(now))
		}
		if !e.quietFor.IsZero() {
			wait = min(wait, e.quietFor.Sub(now))
		}
	}
	return wait
}

func (e *exchanger) undelivered() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.decided)
}

// settle queues the end of an attempt. It is called once for each.
func (e *exchanger) settle(s *queue.Settlement) {
	e.mu.Lock()
	e.decided = append(e.decided, s)
	e.mu.Unlock()
	ring(e.bell)
}

// take returns what is to be sent.
func (e *exchanger) take() []*queue.Settlement {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := queue.Fit(e.decided)
	batch := e.decided[:n:n]
	if e.decided = e.decided[n:]; len(e.decided) == 0 {
		e.decided = nil
	}
	return batch
}

// giveBack puts what could not be sent before the rest.
func (e *exchanger) giveBack(batch []*queue.Settlement) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.decided = append(batch, e.decided...)
}

// round is one exchange and what follows from it.
func (e *exchanger) round(ctx context.Context) {
	pool := e.in.n.pool
	e.must.Store(false)
	x := queue.Exchange{Settle: e.take(), Bye: e.bye()}
	if e.in.claiming() && !e.barrier {
		x.Want = pool.reserve(e.seat, maxClaims)
		x.Risky = x.Want > 0 && pool.takeRisk()
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := e.in.claims.Exchange(call, e.queue, x)
	if err != nil {
		e.failed(x, err)
		return
	}
	e.in.n.redis.answered()
	e.failures, e.last = 0, time.Now()
	e.failing.Store(false)
	if len(x.Settle)+len(reply.Claims)+e.running.len() > 0 {
		e.used.Store(true)
	}
	if len(reply.Claims) > 0 {
		e.served.Store(true)
	}
	e.report(x.Settle, reply.Verdicts)
	switch {
	case x.Bye, reply.Gone && e.parted:
		e.said.Store(true)
		return
	case reply.Gone:
		e.in.lose("the queue says that this session is gone")
	}
	for _, id := range reply.Cancel {
		if e.running.cancelJob(id, queue.ErrCancelled) {
			e.log.Info().Str("job", id).Msg("cancelled, its handler is told to end")
		}
	}
	e.start(x, reply)
	if e.in.phase() != phaseGone && (e.barrier || e.rollCall.Load()) {
		e.callRoll(ctx)
	} else if e.lookUp.Swap(false) {
		e.lookUpRunning(ctx)
	}
	if len(reply.Claims) > 1 {
		runtime.Gosched() // what ends at once travels with the next exchange
	}
}

// bye reports whether the next exchange may be the last one: all was handed
// back, and a roll call of this phase found nothing more.
func (e *exchanger) bye() bool {
	if e.in.phase() != phaseHandBack {
		return false
	}
	e.letGo()
	if !e.parting {
		e.parting = true
		e.rollCall.Store(true)
	}
	return !e.barrier && !e.rollCall.Load() && e.undelivered() == 0
}

// letGo decides what still runs, so that nothing is held after the last turn.
// Only this loop starts attempts, so none can follow.
func (e *exchanger) letGo() {
	for _, a := range e.running.all() {
		a.cancel(queue.ErrShutdown)
		e.decide(a, a.claim.Released())
	}
}

// failed keeps the settlements. After an unknown result the next exchange claims
// nothing, and a roll call finds what was claimed in vain.
func (e *exchanger) failed(x queue.Exchange, err error) {
	unknown := queue.IsUnknown(err) || errors.Is(err, queue.ErrStale)
	for _, s := range x.Settle {
		if unknown {
			s.Again()
			e.again[s] = true
		}
	}
	e.giveBack(x.Settle)
	e.barrier = true // also after a definite failure: the connection may have broken
	e.parted = e.parted || x.Bye && unknown
	e.failing.Store(true)
	e.in.n.pool.answer(e.seat, x.Want, false) // nobody waits for the share of a queue that fails
	if x.Risky {
		e.in.n.pool.dropRisk()
	}
	pause := min(firstPause<<min(e.failures, 8), longestPause)
	e.failures++
	e.restTill = time.Now().Add(pause/2 + rand.N(pause/2))
	e.in.n.redis.failed(err)
}

// start runs what was claimed and gives back the slots that were not filled.
func (e *exchanger) start(x queue.Exchange, reply *queue.Exchanged) {
	pool, risky := e.in.n.pool, false
	for _, c := range reply.Claims {
		risky = risky || c.Stalls() >= 2
		e.begin(c, reply.At)
	}
	if x.Risky && !risky {
		pool.dropRisk()
	}
	e.next = time.Time{}
	if reply.Next >= 0 {
		e.next = time.Now().Add(reply.Next + netAfter)
	}
	claimless := x.Want > 0 && len(reply.Claims) == 0 && reply.Backlog > 0
	e.rest(claimless, reply)
	pool.answer(e.seat, x.Want-len(reply.Claims), reply.Backlog > 0 && !claimless && !reply.Paused)
}

// rest plans the next look at a queue that had jobs and gave none. The more such
// queues there are, the longer each rests: idle nodes make few calls, and a wake
// token ends the rest of the queue that can go on.
func (e *exchanger) rest(claimless bool, reply *queue.Exchanged) {
	aside := claimless && !reply.Paused && reply.Backlog < e.backlog
	e.backlog = reply.Backlog
	e.quietFor = time.Time{}
	e.quietTill.Store(0)
	switch now := time.Now(); {
	case aside:
		e.quietFor = now.Add(asideRest)
	case claimless:
		e.quietFor = now.Add(time.Duration(1+e.in.quiet(now)) * claimlessRest)
		e.quietTill.Store(int64(e.quietFor.Sub(e.in.born)))
	}
}

// isQuiet reports that the queue rests since it had jobs and gave none.
func (e *exchanger) isQuiet(now time.Time) bool {
	return now.Sub(e.in.born) < time.Duration(e.quietTill.Load())
}

// begin starts the handler of a claim.
func (e *exchanger) begin(c *queue.Claim, now time.Time) {
	if !e.in.claiming() { // the node drains or doubts since it asked
		e.settle(c.Released())
		e.vacate(c)
		return
	}
	h := e.in.n.handlers[c.Kind]
	if h == nil && c.Broken() == nil {
		e.in.n.metrics.unserved(c)
		e.in.n.complain.Do("unserved in "+e.queue, func() {
			e.log.Warn().Str("job", c.ID).Str("kind", c.Kind).Msg("no handler for this kind here, put aside")
		})
		e.settle(c.Unserved())
		e.vacate(c)
		return
	}
	a := newAttempt(e.in.handlers, c)
	e.running.add(a)
	if e.in.doubt.Load() { // it began just now: who looked through what runs has missed this one
		a.cancel(queue.ErrSessionLost)
	}
	e.in.n.metrics.started(c, now)
	e.log.Info().Str("job", c.ID).Str("kind", c.Kind).Int("attempt", c.Attempt).Msg("started")
	go call(a.ctx, h, c, func(err error) { e.ended(a, err) })
}

// ended is called on the handler's goroutine when it is over.
func (e *exchanger) ended(a *attempt, err error) {
	cause := a.cause()
	a.free()
	e.in.n.metrics.ended(a)
	if a.decided.CompareAndSwap(false, true) {
		e.settle(judge(a.claim, e.in.n.cfg.Name, cause, err))
	}
	e.running.remove(a)
	e.vacate(a.claim)
	ring(e.bell)
}

// vacate frees the slot of a claim.
func (e *exchanger) vacate(c *queue.Claim) {
	if c.Stalls() >= 2 {
		e.in.n.pool.dropRisk()
	}
	e.in.n.pool.release(e.seat, 1)
}
