package queue

import (
	"context"
	"sync/atomic"
	"time"
)

// serverClock remembers what Redis's clock said last. It is only ever given
// back to Redis, as the age of a command.
type serverClock struct{ last atomic.Pointer[reading] }

type reading struct {
	ms int64
	at time.Time // monotonic
}

func (s *serverClock) saw(ms int64) {
	if ms > 0 {
		s.last.Store(&reading{ms, time.Now()})
	}
}

// freshFor is how long the last answer's time serves as the age of a command.
const freshFor = time.Minute

// stamp returns the Redis time (ms) of the last answer, and asks for it at first
// and after a minute without one.
func (c *Client) stamp(ctx context.Context) (int64, error) {
	if r := c.clock.last.Load(); r != nil && time.Since(r.at) < freshFor {
		return r.ms, nil
	}
	t, err := c.rdb.Time(ctx).Result()
	if err != nil {
		return 0, err
	}
	c.clock.saw(t.UnixMilli())
	return t.UnixMilli(), nil
}
