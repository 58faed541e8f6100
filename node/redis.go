package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kelpiehq/kelpie/queue"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

// redisSide holds the connections to Redis. Control, data and blocking calls
// have pools of their own, so none can starve another.
type redisSide struct {
	controlClient *redis.Client
	clients       []*redis.Client
	control       *queue.Client // beats, lock
	data          *queue.Client // exchanges, sweeps, reads

	cfg      Config
	log      zerolog.Logger
	complain *complaints
	dials    atomic.Int64 // connections that the control pool has made
	mu       sync.Mutex
	since    time.Time // of the failure that lasts, zero if Redis answers
}

func newRedisSide(c Config, log zerolog.Logger, complain *complaints) (r *redisSide, err error) {
	r = &redisSide{cfg: c, log: log, complain: complain}
	if r.controlClient, r.control, err = r.connect(4, beatTimeout); err != nil {
		return nil, err
	}
	r.controlClient.AddHook(dials{&r.dials})
	client, data, err := r.connect(len(c.Queues)+8, callTimeout)
	r.data, r.clients = data, []*redis.Client{r.controlClient, client}
	return r, err
}

// connect makes a client with a pool of its own; nothing is dialled yet.
func (r *redisSide) connect(pool int, timeout time.Duration) (*redis.Client, *queue.Client, error) {
	client, err := queue.Connect(r.cfg.Redis, func(o *redis.Options) {
		o.PoolSize, o.ReadTimeout, o.WriteTimeout = pool, timeout, timeout
		if r.cfg.redis != nil {
			r.cfg.redis(o)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	space, err := queue.New(client, queue.Options{Prefix: r.cfg.Prefix, Log: r.log})
	return client, space, err
}

// waiter makes a client for one blocking call at a time. Closing it is the only
// way to end a call that blocks.
func (r *redisSide) waiter() (*queue.Client, func(), error) {
	client, space, err := r.connect(1, callTimeout)
	if err != nil {
		return nil, nil, err
	}
	return space, func() { _ = client.Close() }, nil
}

// close ends every connection, blocked ones as well.
func (r *redisSide) close() {
	for _, c := range r.clients {
		_ = c.Close()
	}
}

// failed notes a failure: one line when it begins, then at most one a second and
// cause.
func (r *redisSide) failed(err error) {
	if errors.Is(err, queue.ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, queue.ErrGone) {
		return
	}
	r.mu.Lock()
	if r.since.IsZero() {
		r.since = time.Now()
	}
	r.mu.Unlock()
	r.complain.Do(cause(err), func() { r.log.Warn().Err(err).Msg("Redis: trouble") })
}

// answered notes that Redis answers.
func (r *redisSide) answered() {
	r.mu.Lock()
	since := r.since
	r.since = time.Time{}
	r.mu.Unlock()
	if !since.IsZero() && time.Since(since) > time.Second {
		r.log.Info().Dur("after_ms", time.Since(since)).Msg("Redis answers again")
	}
}

// ready reports whether Redis answers, as far as is known.
func (r *redisSide) ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.since.IsZero() && time.Since(r.since) > time.Second {
		return fmt.Errorf("Redis does not answer for %v", time.Since(r.since).Round(time.Second))
	}
	return nil
}

// address is where Redis is, or the first Sentinel, for the choice of our own
// address.
func (r *redisSide) address() (network, addr string) {
	network, addrs, err := queue.Endpoints(r.cfg.Redis)
	if err != nil || len(addrs) == 0 {
		return "", ""
	}
	return network, addrs[0]
}

// await asks what Redis this is until it answers. Unreachable, busy and
// read-only ones are waited for; what waiting cannot mend is returned.
func (r *redisSide) await(ctx context.Context) (queue.Server, error) {
	for try := 0; ; try++ {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		s, err := r.data.Server(call)
		cancel()
		if err == nil || permanent(err) {
			return s, err
		}
		if ctx.Err() != nil {
			return s, errStopped
		}
		r.failed(err)
		if !sleep(ctx, backoff(try)) {
			return s, errStopped
		}
	}
}

// permanent reports a failure that no waiting mends.
func permanent(err error) bool {
	return errors.Is(err, queue.ErrRefused) || errors.Is(err, queue.ErrCluster) || errors.Is(err, queue.ErrFormat) ||
		errors.Is(err, queue.ErrWrongType) || errors.Is(err, queue.ErrBadInput) || errors.Is(err, queue.ErrGone)
}

// backoff is 0.1 s, doubling up to 5 s, with jitter.
func backoff(try int) time.Duration {
	d := min(100*time.Millisecond<<min(try, 6), 5*time.Second)
	return d/2 + rand.N(d/2)
}

// cause names a kind of failure, so that equal ones are said once a second.
func cause(err error) string {
	for _, kind := range []error{queue.ErrBusy, queue.ErrReadOnly, queue.ErrFull, queue.ErrRefused, queue.ErrWrongType, queue.ErrUnreachable} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op
	}
	return err.Error()
}
