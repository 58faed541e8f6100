package queue

import (
	"context"
	"fmt"
)

// Register adds queues to the registry, which outlives them. ErrFormat as for
// CheckFormat; nothing is added then.
func (c *Client) Register(ctx context.Context, queues ...string) error {
	if err := c.CheckFormat(ctx); err != nil || len(queues) == 0 {
		return err
	}
	members := make([]any, len(queues))
	for i, q := range queues {
		members[i] = q
	}
	return wrap("register", "", "", c.rdb.SAdd(ctx, c.keys.whole("queues"), members...).Err())
}

// CheckFormat refuses data that a node of another major version has written:
// what is not understood must not be changed. ErrFormat says so. A client calls
// it by itself before its first command to a queue, after each broken connection
// and once a minute.
func (c *Client) CheckFormat(ctx context.Context) error {
	found, err := c.rdb.Get(ctx, c.keys.whole("format")).Result()
	if isNil(err) {
		return nil // no node was here yet
	}
	if err == nil {
		err = checkFormat(found)
	}
	return wrap("check format", "", "", err)
}

func checkFormat(found string) error {
	if found == formatVersion {
		return nil
	}
	return fmt.Errorf("%w: it is %q, this program knows %q", ErrFormat, clip(found, 20), formatVersion)
}
