package node

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// dials counts the connections that a pool has made. An idle connection that
// broke is replaced by the library without a word, so a new one is all that
// tells of a Redis that may have come back without its last writes.
type dials struct{ n *atomic.Int64 }

func (d dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			d.n.Add(1)
		}
		return conn, err
	}
}

func (dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// reconnected asks every queue that gave this session jobs to call the roll if
// the beats' pool made a new connection since it was asked last. That the pool
// merely grew is a reason too: it costs one look.
func (in *incarnation) reconnected() {
	now := in.n.redis.dials.Load()
	if before := in.dialled.Swap(now); before == 0 || before == now {
		return
	}
	for _, e := range in.exchangers {
		if e.served.Load() {
			e.rollCall.Store(true)
			ring(e.bell)
		}
	}
}
