package fault

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// redisKinds harm Redis itself.
var redisKinds = []Kind{
	redisKind("redis-kill", "kill -9 of Redis, and its restart with what it kept after For", func(ctx context.Context, b *blow) error {
		b.owe(b.w.Redis.Restart)
		b.atRedis()
		b.w.Redis.Kill()
		b.last(ctx)
		return nil
	}),
	redisKind("redis-pause", "Redis stands still for For (SIGSTOP)", func(ctx context.Context, b *blow) error {
		b.owe(func(context.Context) error { b.w.Redis.Resume(); return nil })
		b.atRedis()
		b.w.Redis.Pause()
		b.last(ctx)
		return nil
	}),
	redisKind("redis-full", "Redis is out of memory for For", func(ctx context.Context, b *blow) error {
		return b.switched(ctx, b.w.Redis.Full)
	}),
	redisKind("redis-disk", "the disk of Redis is full for For", func(ctx context.Context, b *blow) error {
		return b.switched(ctx, b.w.Redis.Disk)
	}),
	redisKind("redis-loading", "kill -9 of Redis, and a restart that loads its data for For (default 5 s)", func(ctx context.Context, b *blow) error {
		return b.once(ctx, func(ctx context.Context) error { return b.w.Redis.Reload(ctx, cmp.Or(b.fault.For, 5*time.Second)) })
	}),
	redisKind("redis-busy", "Redis runs one script for For (default 2 s)", busy),
	redisKind("script-flush", "the script cache of Redis is emptied", func(ctx context.Context, b *blow) error {
		return b.once(ctx, b.w.Redis.FlushScripts)
	}),
	redisKind("flush-all", "Redis forgets all that it had (FLUSHALL)", func(ctx context.Context, b *blow) error {
		return b.once(ctx, b.w.Redis.FlushAll)
	}),
	redisKind("rollback", "Redis is set back to how it was For ago", rollback),
	{
		Name: "failover", Says: "the master dies, a replica takes its place, and the dead one comes back as a replica",
		Aims: []string{AtRedis}, Needs: []string{Replicas}, holds: []thing{redis},
		strike: func(ctx context.Context, b *blow) error { return b.once(ctx, b.w.Failover) },
	},
}

func redisKind(name, says string, strike func(ctx context.Context, b *blow) error) Kind {
	return Kind{Name: name, Says: says, Aims: []string{AtRedis}, Needs: []string{OwnRedis}, holds: []thing{redis}, strike: strike}
}

// atRedis records that Redis is hit now. What is done to it may take long.
func (b *blow) atRedis() { b.record(history.Strike{Phase: history.Hit, Target: AtRedis}) }

// once does what cannot be undone, and is not left half done when ctx ends.
func (b *blow) once(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healing)
	defer cancel()
	b.atRedis()
	return do(ctx)
}

// switched turns something on, and off again in the end.
func (b *blow) switched(ctx context.Context, set func(ctx context.Context, on bool) error) error {
	b.owe(func(ctx context.Context) error { return set(ctx, false) })
	t := history.Now()
	if err := set(ctx, true); err != nil {
		return errors.Join(err, b.mend(ctx))
	}
	b.record(history.Strike{T: t, Phase: history.Hit, Target: AtRedis})
	b.last(ctx)
	return nil
}

func busy(ctx context.Context, b *blow) error {
	b.atRedis()
	return b.w.Redis.Busy(ctx, cmp.Or(b.fault.For, 2*time.Second))
}

// rollback keeps what Redis has at the beginning. The hit is the moment when
// Redis is set back.
func rollback(ctx context.Context, b *blow) error {
	if err := b.w.Redis.Snapshot(ctx); err != nil {
		return err
	}
	if b.last(ctx); ctx.Err() != nil {
		b.say("the time for faults was over before Redis was set back")
		return nil
	}
	err := b.once(ctx, b.w.Redis.Rollback)
	if err != nil {
		b.owe(b.w.Redis.Restart) // it may be down
	}
	return err
}
