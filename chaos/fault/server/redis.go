package server

import (
	"context"
	"errors"
	"time"

	"github.com/kelpiehq/kelpie/chaos/process"
)

// Options of a server. The zero value is found on the PATH, listens on
// 127.0.0.1 and keeps an AOF that is synced every second.
type Options struct {
	Program string   // default: what Find finds
	Host    string   // to listen on and to be told to clients; default 127.0.0.1
	Fsync   string   // always, everysec or no; default everysec
	Args    []string // further ones, such as "--maxmemory", "1gb"
	Name    string   // of its process in the kennel; default redis
}

// Redis is a server that the kennel owns. Its methods are safe for concurrent
// use, but two that hurt it at once make little sense.
type Redis struct{}

// Start starts a server on a free port and waits until it answers.
func Start(ctx context.Context, k *process.Kennel, o Options) (*Redis, error) {
	return nil, errors.ErrUnsupported
}

// URL is its address as redis://, the same over restarts.
func (r *Redis) URL() string { return "" }

// Addr is its address as host:port.
func (r *Redis) Addr() string { return "" }

// Name is program and version, such as "redis-server 7.0.15".
func (r *Redis) Name() string { return "" }

// Dir is where it keeps its AOF.
func (r *Redis) Dir() string { return "" }

// Close gives up the connections to it; the kennel ends the process.
func (r *Redis) Close() error { return nil }

// Kill ends the server as kill -9 does and waits until it is gone.
func (r *Redis) Kill() {}

// Restart starts it again on the same address with what it kept, and waits until
// it has loaded that. One that runs is killed first.
func (r *Redis) Restart(ctx context.Context) error { return errors.ErrUnsupported }

// Pause freezes the server (SIGSTOP): connections stay, nothing answers.
func (r *Redis) Pause() {}

// Resume lets it go on.
func (r *Redis) Resume() {}

// Full makes the server as good as out of memory, or ends that: it refuses what
// needs memory, as with maxmemory reached under noeviction.
func (r *Redis) Full(ctx context.Context, on bool) error { return errors.ErrUnsupported }

// Disk makes every write to its files fail, as on a full disk, or ends that.
func (r *Redis) Disk(ctx context.Context, full bool) error { return errors.ErrUnsupported }

// Busy has the server run one script for so long, and returns after it.
func (r *Redis) Busy(ctx context.Context, d time.Duration) error { return errors.ErrUnsupported }

// FlushScripts empties its script cache.
func (r *Redis) FlushScripts(ctx context.Context) error { return errors.ErrUnsupported }

// FlushAll removes everything from it.
func (r *Redis) FlushAll(ctx context.Context) error { return errors.ErrUnsupported }

// Snapshot keeps a copy of its files as they are now, in place of an earlier one.
func (r *Redis) Snapshot(ctx context.Context) error { return errors.ErrUnsupported }

// Rollback kills the server, puts the files of the last Snapshot back and
// restarts it: what was written since is gone.
func (r *Redis) Rollback(ctx context.Context) error { return errors.ErrUnsupported }
