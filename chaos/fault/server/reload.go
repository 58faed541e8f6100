package server

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// ballast is how many keys of its own a server gets to load. Redis looks at its
// clients after each thousand commands that it loads, so they are many.
const ballast = 20_000

// Reload kills the server and starts it again so slowly that it loads its data
// for about d. Until then it answers nothing but LOADING. It returns when all is
// loaded.
func (r *Redis) Reload(ctx context.Context, d time.Duration) error {
	if err := r.ballast(ctx, func(p redis.Pipeliner, key string) { p.Set(ctx, key, "", 0) }); err != nil {
		return err
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	r.delay = max(d/ballast, time.Microsecond)
	err := r.restart(ctx)
	r.delay = 0
	if err != nil {
		return err
	}
	return r.ballast(ctx, func(p redis.Pipeliner, key string) { p.Unlink(ctx, key) })
}

func (r *Redis) ballast(ctx context.Context, do func(p redis.Pipeliner, key string)) error {
	const batch = 1000
	for from := 0; from < ballast; from += batch {
		_, err := r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range batch {
				do(p, "chaos-ballast:"+strconv.Itoa(from+i))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("keys to be loaded: %w", err)
		}
	}
	return nil
}
