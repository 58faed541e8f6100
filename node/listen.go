package node

import (
	"context"
	"time"
)

const (
	// longestWait is how long a wait for a wake token blocks; whatever was lost on
	// the way costs no more than that.
	longestWait = time.Second
	// settleWait bounds the wait for exchanges in flight before such a wait, which
	// cannot be cut short.
	settleWait = 250 * time.Millisecond
)

// listen waits for wake tokens while slots are free. Who takes a token
// exchanges, so wake-ups chain over the cluster. Once a second it asks how many
// jobs wait, also while tokens of some queues, or slots that become free, keep
// it from waiting for long: so the lost token of a queue costs a second.
func (in *incarnation) listen(ctx context.Context) {
	looked := time.Now()
	for turn := 0; ctx.Err() == nil; turn++ {
		if time.Since(looked) >= longestWait {
			looked = time.Now()
			in.lookForBacklog(ctx)
		}
		in.settle(ctx)
		queues := in.servable(turn)
		if len(queues) == 0 {
			in.waitForSlot(ctx, longestWait-time.Since(looked))
			continue
		}
		queue, err := in.wake.AwaitWake(ctx, queues, longestWait)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			in.n.redis.failed(err)
			sleep(ctx, backoff(turn%3))
		case queue != "":
			in.n.redis.answered()
			in.woken(queue)
		}
	}
}

// settle waits until the queues that ask for jobs have their answers. One that
// is empty then is listened to at once; a wait for the tokens of the others
// would be deaf to it for a second.
func (in *incarnation) settle(ctx context.Context) {
	timer := time.NewTimer(settleWait)
	defer timer.Stop()
	for in.claiming() && in.n.pool.unsettled() {
		select {
		case <-ctx.Done():
			return
		case <-in.n.pool.freed:
		case <-timer.C:
			return
		}
	}
}

// servable lists the queues that could get a slot now, rotated so that none is
// always first; those known to have jobs come last, and not without others: an
// exchange is on its way to them.
func (in *incarnation) servable(turn int) []string {
	if !in.claiming() {
		return nil
	}
	var queues, hungry []string
	for i := range in.exchangers {
		e := in.exchangers[(i+turn)%len(in.exchangers)]
		switch {
		case !in.n.pool.could(e.seat):
		case in.n.pool.isHungry(e.seat):
			hungry = append(hungry, e.queue)
		default:
			queues = append(queues, e.queue)
		}
	}
	if len(queues) == 0 {
		return nil
	}
	return append(queues, hungry...)
}

// waitForSlot waits for a free slot, at most so long.
func (in *incarnation) waitForSlot(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-in.n.pool.freed:
	case <-timer.C:
	}
}

// lookForBacklog is the net under the tokens: one call for all queues. Those that
// fail, or gave nothing of late, are asked by their own loops.
func (in *incarnation) lookForBacklog(ctx context.Context) {
	if !in.claiming() || in.n.pool.free() == 0 && len(in.exchangers) == 1 {
		return
	}
	names := make([]string, len(in.exchangers))
	for i, e := range in.exchangers {
		names[i] = e.queue
	}
	sizes, err := in.n.redis.data.Backlogs(ctx, names)
	if err != nil {
		in.n.redis.failed(err)
		return
	}
	now := time.Now()
	for i, e := range in.exchangers {
		if sizes[i] > 0 && !e.failing.Load() && !e.isQuiet(now) {
			in.n.pool.learn(e.seat, true)
			ring(e.seat.bell)
		}
	}
}

// woken makes the loop of a queue exchange.
func (in *incarnation) woken(queue string) {
	for _, e := range in.exchangers {
		if e.queue == queue {
			e.must.Store(true)
			if !e.failing.Load() {
				in.n.pool.learn(e.seat, true)
			}
			ring(e.bell)
		}
	}
}
