package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/queue"
)

// masterName is how the Sentinels call what they watch.
const masterName = "mymaster"

// Sentinel is a master with two replicas, and three Sentinels that watch them. A
// master that is silent for 1.5 s is replaced.
type Sentinel struct {
	servers  []*Redis
	watchers []*watcher
}

// watcher is one Sentinel.
type watcher struct {
	addr  string
	child *process.Child
	rdb   *redis.SentinelClient
}

// StartSentinel starts all six and waits until the Sentinels know each other and
// the replicas have the master's data. Options are those of each server; Name
// begins the names of their processes.
func StartSentinel(ctx context.Context, k *process.Kennel, o Options) (_ *Sentinel, err error) {
	if o, err = o.withDefaults(ctx); err != nil {
		return nil, err
	}
	s := &Sentinel{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.abandon())
		}
	}()
	name := o.Name
	o.Args = append([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, o.Args...)
	master := ""
	for i := range 3 {
		o.Name = name + "-" + strconv.Itoa(i+1)
		r, err := start(ctx, k, o, master)
		if err != nil {
			return nil, err
		}
		s.servers = append(s.servers, r)
		master = o.Host + " " + strconv.Itoa(s.servers[0].port)
	}
	for i := range 3 {
		w, err := s.watch(ctx, k, o, "sentinel-"+strconv.Itoa(i+1))
		if err != nil {
			return nil, err
		}
		s.watchers = append(s.watchers, w)
	}
	return s, s.whole(ctx)
}

// watch starts a Sentinel.
func (s *Sentinel) watch(ctx context.Context, k *process.Kennel, o Options, name string) (*watcher, error) {
	port, err := freePort(o.Host)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.servers[0].dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "sentinel.conf")
	lines := []string{
		"port " + strconv.Itoa(port), "bind " + o.Host, "protected-mode no", `dir "` + dir + `"`,
		"sentinel announce-ip " + o.Host,
		fmt.Sprintf("sentinel monitor %s %s %d 2", masterName, o.Host, s.servers[0].port),
		"sentinel down-after-milliseconds " + masterName + " 1500",
		"sentinel failover-timeout " + masterName + " 3000",
		"sentinel parallel-syncs " + masterName + " 2",
	}
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	w := &watcher{addr: net.JoinHostPort(o.Host, strconv.Itoa(port))}
	opts, err := queue.ParseURL("redis://" + w.addr)
	if err != nil {
		return nil, err
	}
	w.child, err = k.Start(process.Command{Name: name, Program: o.Program, Args: []string{config, "--sentinel"}})
	if err != nil {
		return nil, err
	}
	w.rdb = redis.NewSentinelClient(opts)
	err = await(ctx, w.child, func(ctx context.Context) error {
		if err := knock(ctx, w.addr); err != nil { // asked first: go-redis would print that nobody listens yet
			return err
		}
		return w.rdb.Ping(ctx).Err()
	})
	if err != nil {
		w.child.Kill()
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), w.rdb.Close())
	}
	return w, nil
}

// abandon ends what a start that failed has left.
func (s *Sentinel) abandon() error {
	for _, w := range s.watchers {
		w.child.Kill()
	}
	for _, r := range s.servers {
		r.Kill()
	}
	return s.Close()
}

// URL is redis+sentinel://host:port,host:port,host:port/mymaster.
func (s *Sentinel) URL() string {
	var addrs []string
	for _, w := range s.watchers {
		addrs = append(addrs, w.addr)
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/" + masterName
}

// Servers are the three servers; which one is the master changes.
func (s *Sentinel) Servers() []*Redis { return s.servers }

// Master asks the Sentinels which server is the master.
func (s *Sentinel) Master(ctx context.Context) (*Redis, error) {
	var all error
	for _, w := range s.watchers {
		r, err := s.asSeenBy(ctx, w)
		if err == nil {
			return r, nil
		}
		all = errors.Join(all, err)
	}
	return nil, fmt.Errorf("no Sentinel knows the master: %w", all)
}

func (s *Sentinel) asSeenBy(ctx context.Context, w *watcher) (*Redis, error) {
	hostPort, err := w.rdb.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return nil, err
	}
	addr := net.JoinHostPort(hostPort[0], hostPort[1])
	for _, r := range s.servers {
		if r.Addr() == addr {
			return r, nil
		}
	}
	return nil, fmt.Errorf("the Sentinel at %s names %s, which is none of the servers", w.addr, addr)
}

// Failover kills the master as kill -9 does, waits until another one has its
// place, starts the killed one as a replica and waits until all is whole again.
func (s *Sentinel) Failover(ctx context.Context) error {
	old, err := s.Master(ctx)
	if err != nil {
		return err
	}
	old.turn.Lock()
	defer old.turn.Unlock()
	old.Kill()
	next, err := s.successor(ctx, old)
	if err != nil {
		return fmt.Errorf("failover from %s: %w", old.Addr(), err)
	}
	for _, r := range s.servers {
		r.follow(next)
	}
	if err := old.restart(ctx); err != nil {
		return err
	}
	return s.whole(ctx)
}

// follow makes r a replica of this master at its next start, unless it is the
// master.
func (r *Redis) follow(master *Redis) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.master = ""
	if r != master {
		r.master = master.o.Host + " " + strconv.Itoa(master.port)
	}
}

// successor waits until there is another master.
func (s *Sentinel) successor(ctx context.Context, old *Redis) (next *Redis, err error) {
	err = await(ctx, s.watchers[0].child, func(ctx context.Context) error {
		if next, err = s.agreed(ctx); err == nil && next == old {
			err = errors.New("there is no new master yet")
		}
		return err
	})
	return next, err
}

// agreed returns the master that all Sentinels name, if it is one.
func (s *Sentinel) agreed(ctx context.Context) (*Redis, error) {
	var master *Redis
	for _, w := range s.watchers {
		r, err := s.asSeenBy(ctx, w)
		if err != nil {
			return nil, err
		}
		if master != nil && r != master {
			return nil, errors.New("the Sentinels do not agree yet")
		}
		master = r
	}
	if err := knock(ctx, master.Addr()); err != nil { // dead, and not replaced yet
		return nil, err
	}
	role, err := master.replication(ctx)
	if err == nil && role["role"] != "master" {
		err = fmt.Errorf("%s is no master yet", master.Addr())
	}
	return master, err
}

// whole waits until both replicas have the data of the master, and each Sentinel
// knows them and the other Sentinels. On a machine that is too busy the Sentinels
// may change the master meanwhile.
func (s *Sentinel) whole(ctx context.Context) error {
	err := await(ctx, s.watchers[0].child, func(ctx context.Context) error {
		master, err := s.agreed(ctx)
		if err != nil {
			return err
		}
		for _, r := range s.servers {
			if err := r.attached(ctx, master); err != nil {
				return err
			}
		}
		for _, w := range s.watchers {
			if err := w.content(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the servers and their Sentinels do not come together: %w", err)
	}
	return nil
}

// attached is an error until r has the master's data, unless it is the master.
func (r *Redis) attached(ctx context.Context, master *Redis) error {
	if r == master {
		return nil
	}
	role, err := r.replication(ctx)
	if err == nil && (role["master_link_status"] != "up" || role["master_port"] != strconv.Itoa(master.port)) {
		err = fmt.Errorf("%s does not follow %s yet", r.Addr(), master.Addr())
	}
	return err
}

func (r *Redis) replication(ctx context.Context) (map[string]string, error) {
	info, err := r.rdb.Info(ctx, "replication").Result()
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[k] = v
		}
	}
	return fields, err
}

// content is an error until the Sentinel sees two replicas and two other
// Sentinels, and all of them are well.
func (w *watcher) content(ctx context.Context) error {
	m, err := w.rdb.Master(ctx, masterName).Result()
	if err != nil {
		return err
	}
	if m["flags"] != "master" || m["num-slaves"] != "2" || m["num-other-sentinels"] != "2" {
		return fmt.Errorf("the Sentinel at %s sees a %s with %s replicas, and %s other Sentinels", w.addr, m["flags"], m["num-slaves"], m["num-other-sentinels"])
	}
	replicas, err := w.rdb.Replicas(ctx, masterName).Result()
	if err != nil {
		return err
	}
	for _, r := range replicas {
		if r["flags"] != "slave" {
			return fmt.Errorf("the Sentinel at %s sees %s as %s", w.addr, r["name"], r["flags"])
		}
	}
	return nil
}

// Close gives up the connections to all; the kennel ends the processes.
func (s *Sentinel) Close() error {
	var all error
	for _, w := range s.watchers {
		all = errors.Join(all, w.rdb.Close())
	}
	for _, r := range s.servers {
		all = errors.Join(all, r.Close())
	}
	return all
}
