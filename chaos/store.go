package chaos

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/fault/server"
	"github.com/kelpiehq/kelpie/chaos/watch"
	"github.com/kelpiehq/kelpie/queue"
)

// store is the Redis of a run. Only one of redis, failover and foreign says what
// can be done to it.
type store struct {
	url      string
	upstream string // host:port behind the proxies; "": they do not fit
	topology string
	fsync    string // of a server of the run's own
	redis    fault.Redis
	failover func(context.Context) error
	closers  []func() error
}

// openStore starts what the scenario needs, or takes somebody's own.
func openStore(ctx context.Context, s *stage) (store, error) {
	if s.Redis != "" {
		return foreignStore(s.Redis)
	}
	options := server.Options{Host: s.herd.Host(), Fsync: s.Scenario.Server.Fsync}
	if s.Scenario.Server.Sentinel {
		return sentinelStore(ctx, s, options)
	}
	r, err := server.Start(ctx, s.kennel, options)
	if err != nil {
		return store{}, err
	}
	s.data = append(s.data, r.Dir())
	return store{
		url: r.URL(), upstream: r.Addr(), topology: "one server, a proxy for each node", fsync: options.Fsync,
		redis: &ownRedis{Redis: r, stage: s}, closers: []func() error{r.Close},
	}, nil
}

func sentinelStore(ctx context.Context, s *stage, options server.Options) (store, error) {
	group, err := server.StartSentinel(ctx, s.kennel, options)
	if err != nil {
		return store{}, err
	}
	for _, r := range group.Servers() {
		s.data = append(s.data, r.Dir())
	}
	return store{
		url: group.URL(), topology: "sentinel: 1 master, 2 replicas, 3 sentinels; no proxies", fsync: options.Fsync,
		failover: group.Failover, closers: []func() error{group.Close},
	}, nil
}

// foreignStore takes an address. The proxies read what passes, which they cannot
// do with TLS, and know one place, which Sentinels change.
func foreignStore(address string) (store, error) {
	st := store{url: address, topology: "somebody's own Redis, no proxies"}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "redis" {
		return st, queue.CheckURL(address)
	}
	_, addrs, err := queue.Endpoints(address)
	if err != nil {
		return st, err
	}
	st.upstream, st.topology = addrs[0], "somebody's own Redis, a proxy for each node"
	return st, nil
}

// through is the store's address with another place.
func (st *store) through(addr string) string {
	u, err := url.Parse(st.url)
	if err != nil {
		return st.url // it has been parsed before
	}
	u.Host = addr
	return u.String()
}

// durable says what the Redis keeps, as run.json has it.
func (st *store) durable(s queue.Server) string {
	switch {
	case st.failover != nil:
		return "failover"
	case st.fsync != "":
		return "appendfsync " + st.fsync
	case s.AOF && s.Fsync != "":
		return "appendfsync " + s.Fsync
	case !s.AOF && s.Fsync != "":
		return "no append-only file"
	}
	return "unknown"
}

// ownRedis is a server of the run that keeps the switch of the logs over a
// FLUSHALL: they are set in the same transaction, so that no transition is
// missing.
type ownRedis struct {
	*server.Redis
	stage *stage
}

// FlushAll removes everything but the switch of the logs.
func (r *ownRedis) FlushAll(ctx context.Context) error {
	kept := &held{}
	rdb := redis.NewClient(&redis.Options{Addr: r.Addr()})
	defer rdb.Close()
	rdb.AddHook(kept)
	space, err := queue.New(rdb, queue.Options{Prefix: r.stage.prefix})
	if err != nil {
		return err
	}
	defer space.Close()
	for _, q := range append([]string{watch.Whole}, r.stage.plan.Settings.Queues...) {
		if err := space.KeepLog(ctx, q, true); err != nil {
			return err
		}
	}
	_, err = r.stage.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.FlushAll(ctx)
		for _, cmd := range kept.cmds {
			_ = p.Process(ctx, cmd) // it is queued; the transaction has its error
		}
		return nil
	})
	return err
}

// held is a hook that keeps commands instead of sending them.
type held struct{ cmds []redis.Cmder }

func (h *held) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *held) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		h.cmds = append(h.cmds, cmd)
		return nil
	}
}

func (h *held) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// removeKeys removes all keys of a prefix from somebody's own Redis.
func removeKeys(ctx context.Context, address, prefix string) error {
	rdb, err := queue.Connect(address)
	if err != nil {
		return err
	}
	defer rdb.Close()
	keys := rdb.Scan(ctx, 0, prefix+":*", 1000).Iterator()
	for keys.Next(ctx) {
		if !strings.HasPrefix(keys.Val(), prefix+":") {
			continue // a prefix with a wildcard in it
		}
		if err := rdb.Unlink(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("the keys of the run, %s:*, could not be removed: %w", prefix, err)
		}
	}
	return keys.Err()
}
