package queue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// AwaitWake blocks until one of the queues has a job for a node with free slots,
// or wait is over, and returns that queue or "". It takes the queue's token: who
// gets one must exchange, with nothing wanted if need be, so that the next token
// is pushed. It holds a connection; closing the Redis client ends it. There must
// be a queue; wait counts in whole seconds, one at least.
func (c *Client) AwaitWake(ctx context.Context, queues []string, wait time.Duration) (string, error) {
	return c.await(ctx, "wake", queues, wait)
}

// AwaitPoke blocks until one of the queues has a new earliest due time, or wait
// is over, and returns that queue or "". queues and wait are as for AwaitWake.
func (c *Client) AwaitPoke(ctx context.Context, queues []string, wait time.Duration) (string, error) {
	return c.await(ctx, "poke", queues, wait)
}

func (c *Client) await(ctx context.Context, what string, queues []string, wait time.Duration) (string, error) {
	keys := make([]string, len(queues))
	byKey := make(map[string]string, len(queues))
	for i, q := range queues {
		keys[i] = c.keys.of(q, what)
		byKey[keys[i]] = q
	}
	got, err := c.rdb.BLPop(ctx, max(wait, time.Second), keys...).Result()
	if isNil(err) {
		return "", nil
	}
	if err != nil {
		return "", wrap("wait for "+what, "", "", err)
	}
	return byKey[got[0]], nil
}

// Backlogs returns how many jobs wait in each queue, in one round trip. A queue
// that cannot be read counts as empty, so that it does not hide the others; an
// error means that none could be read.
func (c *Client) Backlogs(ctx context.Context, queues []string) ([]int64, error) {
	pipe := c.rdb.Pipeline()
	for _, q := range queues {
		pipe.ZCard(ctx, c.keys.of(q, "waiting"))
	}
	replies, err := pipe.Exec(ctx)
	sizes, read := make([]int64, len(queues)), false
	for i, r := range replies {
		n, failed := r.(*redis.IntCmd).Result()
		sizes[i], read = n, read || failed == nil
	}
	if err != nil && !read {
		return nil, wrap("count", "", "", err)
	}
	return sizes, nil
}
