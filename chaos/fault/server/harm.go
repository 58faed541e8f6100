package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Full makes the server as good as out of memory, or ends that: it refuses what
// needs memory, as with maxmemory reached under noeviction.
func (r *Redis) Full(ctx context.Context, on bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on == (r.memory != "") {
		return nil
	}
	if !on {
		if err := r.rdb.ConfigSet(ctx, "maxmemory", r.memory).Err(); err != nil {
			return fmt.Errorf("give memory back to Redis: %w", err)
		}
		r.memory = ""
		return nil
	}
	before, err := r.rdb.ConfigGet(ctx, "maxmemory").Result()
	if err == nil {
		err = r.rdb.ConfigSet(ctx, "maxmemory", "1").Err()
	}
	if err != nil {
		return fmt.Errorf("take memory from Redis: %w", err)
	}
	r.memory = before["maxmemory"]
	return nil
}

// Disk makes every write to its AOF fail, as on a full disk, or ends that and
// waits until it writes again. With fsync always Redis ends when a write fails:
// then Disk(ctx, false) restarts it. Where it cannot be done, the error says why.
func (r *Redis) Disk(ctx context.Context, full bool) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	child := r.process()
	select {
	case <-child.Ended():
		if full {
			return errors.New("the disk of Redis cannot be full: it does not run")
		}
		return r.restart(ctx)
	default:
	}
	if full {
		size, err := largest(r.data())
		if err != nil {
			return err
		}
		return limitFiles(child.PID(), size)
	}
	if err := unlimitFiles(child.PID()); err != nil {
		return err
	}
	err := await(ctx, child, func(ctx context.Context) error {
		info, err := r.rdb.Info(ctx, "persistence").Result()
		if err == nil && !strings.Contains(info, "aof_last_write_status:ok") {
			return errors.New("Redis does not write its AOF yet")
		}
		return err
	})
	if err == nil {
		return nil
	}
	select {
	case <-child.Ended(): // a write failed at the last moment
		return r.restart(ctx)
	default:
		return err
	}
}

// largest returns the size of the largest file in a folder and all below it.
func largest(dir string) (int64, error) {
	var most int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			most = max(most, info.Size())
		}
		return err
	})
	return most, err
}

// Busy has the server run one script for so long, at least 100 ms, and returns
// after it. Others are told BUSY when they have waited for 100 ms.
func (r *Redis) Busy(ctx context.Context, d time.Duration) error {
	before, err := r.rdb.ConfigGet(ctx, "lua-time-limit").Result()
	if err == nil {
		err = r.rdb.ConfigSet(ctx, "lua-time-limit", "100").Err()
	}
	if err == nil {
		err = r.spin(ctx, d)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, r.rdb.ConfigSet(ctx, "lua-time-limit", before["lua-time-limit"]).Err())
	}
	if err != nil {
		return fmt.Errorf("keep Redis busy: %w", err)
	}
	return nil
}

// spin runs a script without an end, and has it killed after d or when ctx ends:
// not every Redis lets a script read a clock that goes on.
func (r *Redis) spin(ctx context.Context, d time.Duration) error {
	patient := r.rdb.WithTimeout(d + patience)
	ended := make(chan error, 1)
	go func() { // ends when the script is killed, at the latest after its time-out
		ended <- patient.Eval(context.WithoutCancel(ctx), "while true do end", nil).Err()
	}()
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	case err := <-ended:
		return err
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		_ = r.rdb.ScriptKill(context.WithoutCancel(ctx)).Err() // an error only while the script is not old enough
		select {
		case err := <-ended:
			if err != nil && strings.Contains(err.Error(), "SCRIPT KILL") {
				return nil
			}
			return err
		case <-again.C:
		}
	}
}

// FlushScripts empties its script cache.
func (r *Redis) FlushScripts(ctx context.Context) error {
	return harmed("flush the scripts of Redis", r.rdb.ScriptFlush(ctx))
}

// FlushAll removes everything from it.
func (r *Redis) FlushAll(ctx context.Context) error {
	return harmed("flush all of Redis", r.rdb.FlushAll(ctx))
}

func harmed(what string, c redis.Cmder) error {
	if err := c.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Snapshot keeps a copy of its files, in place of an earlier one: all that it
// had acknowledged before, and perhaps some of what came during the call.
func (r *Redis) Snapshot(ctx context.Context) (err error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	// With everysec a write to the AOF may be put off while the disk is slow. With
	// no it is made before the reply, also what was put off until then.
	if err := r.rdb.ConfigSet(ctx, "appendfsync", "no").Err(); err != nil {
		return fmt.Errorf("snapshot of Redis: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, r.rdb.ConfigSet(ctx, "appendfsync", r.o.Fsync).Err())
	}()
	if err := os.RemoveAll(r.snapshot()); err != nil {
		return err
	}
	// A copy of an AOF taken while it grows is the beginning of it: Redis drops
	// what is torn at its end.
	if err := os.CopyFS(r.snapshot(), os.DirFS(r.data())); err != nil {
		return fmt.Errorf("snapshot of Redis: %w", err)
	}
	return nil
}

// Rollback kills the server, puts the files of the last Snapshot back and
// restarts it: what was written since is gone.
func (r *Redis) Rollback(ctx context.Context) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	if _, err := os.Stat(r.snapshot()); err != nil {
		return fmt.Errorf("rollback of Redis: there is no snapshot: %w", err)
	}
	r.Kill()
	err := os.RemoveAll(r.data())
	if err == nil {
		err = os.CopyFS(r.data(), os.DirFS(r.snapshot()))
	}
	if err != nil {
		return fmt.Errorf("rollback of Redis: %w", err)
	}
	return r.restart(ctx)
}
