package node

import (
	"context"
	"fmt"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

const (
	patrolEvery = 250 * time.Millisecond
	overrun     = time.Second // a handler has so long to return after its context has ended
	redisSilent = time.Second // without an answered beat, or two heartbeats if that is more: gossip says that Redis is lost here
	lookUpEvery = 10 * time.Second
	rollEvery   = time.Minute
)

// patrol looks after what must be noticed without an event: doubt, and handlers
// that ignore their end.
func (in *incarnation) patrol(ctx context.Context) {
	for sleep(ctx, patrolEvery) {
		now := time.Now()
		in.judgeTrust(now)
		for _, e := range in.exchangers {
			e.overruns(now)
		}
	}
}

// judgeTrust cancels all handlers after 2/3 of the lease without an answered
// beat, since this node may have been replaced; not while every reachable peer
// has lost Redis too, since nobody can condemn then. Only an answered beat ends
// the doubt: peers that lose Redis later may have condemned this session before.
func (in *incarnation) judgeTrust(now time.Time) {
	limit := in.n.cfg.Lease * 2 / 3
	in.n.tellRedis(in.trust.silentFor(now) < max(redisSilent, 2*in.n.cfg.Heartbeat))
	if in.n.peersLostRedis() {
		in.trust.excuse(now, limit)
	}
	doubt := in.trust.age(now) > limit
	if in.doubt.Swap(doubt) == doubt {
		return
	}
	if !doubt {
		in.log.Info().Msg("a heartbeat was answered again, claiming goes on")
		in.enter(in.phase()) // rings
		return
	}
	in.log.Warn().Int("handlers", in.active()).Msg("no heartbeat answered for 2/3 of the lease: handlers cancelled, nothing claimed")
	for _, e := range in.exchangers {
		for _, a := range e.running.all() {
			a.cancel(queue.ErrSessionLost)
		}
	}
}

// overruns decides for handlers that do not return after their context ended.
func (e *exchanger) overruns(now time.Time) {
	for _, a := range e.running.all() {
		cause := a.cause()
		switch {
		case cause == nil || a.decided.Load():
			continue
		case a.over.IsZero():
			a.over = now
			continue
		case now.Sub(a.over) < overrun:
			continue
		}
		switch cause {
		case queue.ErrTimeout:
			e.decide(a, a.claim.Settle(e.in.n.cfg.Name, fmt.Errorf("%w and the handler ignores it: its slot stays taken until it returns", cause)))
		case queue.ErrCancelled:
			e.decide(a, a.claim.Released())
		}
	}
}

// decide settles an attempt whose handler still runs.
func (e *exchanger) decide(a *attempt, s *queue.Settlement) bool {
	if !a.decided.CompareAndSwap(false, true) {
		return false
	}
	e.in.n.metrics.overrun(a.claim)
	e.log.Warn().Str("job", a.claim.ID).Str("kind", a.claim.Kind).Msg("the handler ignores the end of its context; decided without it")
	e.settle(s)
	return true
}

// rollCaller asks, every 10 s, the queues in use to look up what runs, and one
// idle queue to call the roll; once a minute it calls the roll of all in use,
// and puts back into Redis what every node keeps there.
func (in *incarnation) rollCaller(ctx context.Context) {
	for turn := 1; sleep(ctx, lookUpEvery); turn++ {
		minute := turn%int(rollEvery/lookUpEvery) == 0
		for i, e := range in.exchangers {
			switch idle := !e.used.Swap(false); {
			case idle && i == turn%len(in.exchangers), !idle && minute:
				e.rollCall.Store(true)
			case !idle:
				e.lookUp.Store(true)
			default:
				continue
			}
			ring(e.bell)
		}
		if minute {
			in.n.restore(ctx)
		}
	}
}
