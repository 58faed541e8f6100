package node

import (
	"context"
	"time"
)

// longestWait is how long a wait for a wake token blocks; whatever was lost on
// the way costs no more than that.
const longestWait = time.Second

// listen waits for wake tokens while slots are free. Who takes a token
// exchanges, so wake-ups chain over the cluster.
func (in *incarnation) listen(ctx context.Context) {
	for turn := 0; ctx.Err() == nil; turn++ {
		queues := in.servable(turn)
		if len(queues) == 0 {
			in.waitForSlot(ctx)
			continue
		}
		queue, err := in.wake.AwaitWake(ctx, queues, longestWait)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			in.n.redis.failed(err)
			sleep(ctx, backoff(turn%3))
		case queue == "":
			in.lookForBacklog(ctx)
		default:
			in.n.redis.answered()
			in.woken(queue)
		}
	}
}

// servable lists the queues that could get a slot now, rotated so that none is
// always first.
func (in *incarnation) servable(turn int) []string {
	if !in.claiming() {
		return nil
	}
	var queues []string
	for i := range in.exchangers {
		e := in.exchangers[(i+turn)%len(in.exchangers)]
		if in.n.pool.could(e.seat) && !in.n.pool.isHungry(e.seat) {
			queues = append(queues, e.queue)
		}
	}
	return queues
}

// waitForSlot waits for a free slot, and looks meanwhile once a second for
// queues that had nothing, so that they get their share.
func (in *incarnation) waitForSlot(ctx context.Context) {
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-in.n.pool.freed:
	case <-timer.C:
		if in.claiming() && len(in.exchangers) > 1 {
			in.lookForBacklog(ctx)
		}
	}
}

// lookForBacklog is the net under the tokens: one call for all queues.
func (in *incarnation) lookForBacklog(ctx context.Context) {
	names := make([]string, len(in.exchangers))
	for i, e := range in.exchangers {
		names[i] = e.queue
	}
	sizes, err := in.n.redis.data.Backlogs(ctx, names)
	if err != nil {
		in.n.redis.failed(err)
		return
	}
	for i, e := range in.exchangers {
		if sizes[i] > 0 {
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
			in.n.pool.learn(e.seat, true)
			ring(e.seat.bell)
			ring(e.bell)
		}
	}
}
