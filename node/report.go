package node

import (
	"context"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// report writes what became of each settlement: one line for each move that a
// human waits for.
func (e *exchanger) report(batch []*queue.Settlement, verdicts []queue.Verdict) {
	for i, s := range batch {
		c, again := s.Claim(), e.again[s]
		delete(e.again, s)
		if again && verdicts[i] != queue.Settled {
			e.log.Info().Str("job", c.ID).Int64("fence", c.Fence).Stringer("outcome", s.Verb).
				Msg("sent again after an answer was lost: it had counted then, or another attempt has the job")
			continue
		}
		e.in.n.metrics.settled(s, verdicts[i])
		if verdicts[i] != queue.Settled {
			e.log.Warn().Str("job", c.ID).Int64("fence", c.Fence).Stringer("outcome", s.Verb).
				Msg("claim lost: another attempt has the job, or it has ended; this result does not count")
			continue
		}
		switch s.Verb {
		case queue.VerbComplete:
			e.log.Debug().Str("job", c.ID).Str("kind", c.Kind).Msg("completed")
		case queue.VerbRetry:
			e.log.Warn().Str("job", c.ID).Str("kind", c.Kind).Int("attempt", c.Attempt).Dur("in_ms", s.Delay).
				Str("error", firstLine(s.Err)).Msg("failed, runs again")
		case queue.VerbDead:
			e.log.Error().Str("job", c.ID).Str("kind", c.Kind).Int("attempt", c.Attempt).
				Str("error", firstLine(s.Err)).Msg("failed, dead")
		case queue.VerbRelease, queue.VerbSnooze:
			e.log.Info().Str("job", c.ID).Str("kind", c.Kind).Stringer("outcome", s.Verb).Msg("handed back, no attempt spent")
		}
	}
}

// firstLine keeps a log line one line.
func firstLine(err error) string {
	if err == nil {
		return ""
	}
	s := safeText(err)
	for i, r := range s {
		if r == '\n' || i > 500 {
			return s[:i]
		}
	}
	return s
}

// safeText calls a handler's error, which may panic.
func safeText(err error) (s string) {
	defer func() {
		if recover() != nil {
			s = "an error whose text panics"
		}
	}()
	return err.Error()
}

// callRoll compares what this session holds in the queue with what runs: held
// and not run goes back, run and not held is cancelled. It follows an answered
// exchange, on the only goroutine that exchanges, so nothing is in flight.
func (e *exchanger) callRoll(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	held, err := e.in.claims.Held(call, e.queue)
	if err != nil {
		e.pause(err)
		return
	}
	known := map[claimed]bool{}
	for _, a := range e.running.all() {
		known[claimOf(a.claim)] = true
		if held[a.claim.ID] != a.claim.Token() && !a.decided.Load() {
			e.forfeit(a)
		}
	}
	e.mu.Lock()
	for _, s := range e.decided {
		known[claimOf(s.Claim())] = true
	}
	e.mu.Unlock()
	for id, token := range held {
		if known[claimed{id, token}] {
			continue
		}
		s, err := e.in.claims.HandBack(call, e.queue, id, token)
		if err != nil {
			e.pause(err)
			return
		}
		e.log.Info().Str("job", id).Msg("held but not run here (a reply was lost), goes back")
		e.settle(s)
	}
	e.barrier, e.uncalled = false, 0
	e.rollCall.Store(false)
}

// claimed names a claim. A token alone does not: a Redis that lost its last writes
// may give it out again, for another job.
type claimed struct{ id, token string }

func claimOf(c *queue.Claim) claimed { return claimed{c.ID, c.Token()} }

// lookUpRunning asks only for what runs.
func (e *exchanger) lookUpRunning(ctx context.Context) {
	var attempts []*attempt
	var claims []*queue.Claim
	for _, a := range e.running.all() {
		if !a.decided.Load() {
			attempts, claims = append(attempts, a), append(claims, a.claim)
		}
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	held, err := e.in.claims.Lookup(call, e.queue, claims)
	if err != nil {
		e.pause(err)
		return
	}
	e.uncalled = 0
	for i, ok := range held {
		if !ok && !attempts[i].decided.Load() {
			e.forfeit(attempts[i])
		}
	}
}

// forfeit cancels a handler whose claim is gone. Its result is still sent, to be
// refused and counted.
func (e *exchanger) forfeit(a *attempt) {
	if a.cause() == nil {
		e.log.Warn().Str("job", a.claim.ID).Int64("fence", a.claim.Fence).Msg("runs here but is not held any more, handler cancelled")
		a.cancel(queue.ErrSessionLost)
	}
}

// pause is what follows a roll call or a look-up that failed: the next exchange
// claims nothing, and calls the roll.
func (e *exchanger) pause(err error) {
	e.barrier = true
	e.failing.Store(true)
	e.in.n.pool.learn(e.seat, false)
	e.restTill = time.Now().Add(min(firstPause<<min(e.uncalled, 8), longestPause))
	e.uncalled++
	e.in.n.redis.failed(err)
}
