package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/queue"
)

// Options of a server. The zero value is found on the PATH, listens on
// 127.0.0.1 and keeps an AOF that is synced every second.
type Options struct {
	Program string   // default: what Find finds
	Host    string   // address to listen on, and to be told to clients; default 127.0.0.1
	Fsync   string   // always, everysec or no; default everysec
	Args    []string // further ones, such as "--maxmemory", "1gb"
	Name    string   // of its process in the kennel; default redis
}

func (o Options) withDefaults(ctx context.Context) (Options, error) {
	o.Host, o.Fsync, o.Name = cmp.Or(o.Host, "127.0.0.1"), cmp.Or(o.Fsync, "everysec"), cmp.Or(o.Name, "redis")
	if o.Program != "" {
		return o, nil
	}
	var tooOld string
	if o.Program, tooOld = Find(ctx); o.Program != "" {
		return o, nil
	}
	if tooOld != "" {
		return o, errors.New(tooOld)
	}
	return o, fmt.Errorf("neither redis-server nor valkey-server is on the PATH; %s or later is needed", queue.MinVersion)
}

// Redis is a server that the kennel owns. Its methods are safe for concurrent
// use; of those that change the process (Kill, Restart, Disk, Rollback) one runs
// at a time.
type Redis struct {
	o      Options
	kennel *process.Kennel
	port   int
	dir    string
	rdb    *redis.Client
	about  queue.Server

	turn  sync.Mutex    // held while the process is changed
	delay time.Duration // of each command that it loads, see Reload; behind turn

	mu     sync.Mutex
	child  *process.Child
	master string // --replicaof of the next start: "host port", "" for none
	memory string // maxmemory before Full; "" while it is not full
}

// patience bounds the start of a server, with the loading of its data.
const patience = 30 * time.Second

// Start starts a server on a free port and waits until it answers.
func Start(ctx context.Context, k *process.Kennel, o Options) (*Redis, error) {
	o, err := o.withDefaults(ctx)
	if err != nil {
		return nil, err
	}
	return start(ctx, k, o, "")
}

func start(ctx context.Context, k *process.Kennel, o Options, master string) (*Redis, error) {
	var err error
	for range 5 { // another process may take the port first
		var r *Redis
		if r, err = open(ctx, k, o, master); err == nil {
			return r, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("%s: %w", o.Program, err)
}

func open(ctx context.Context, k *process.Kennel, o Options, master string) (_ *Redis, err error) {
	r := &Redis{o: o, kennel: k, master: master}
	if r.port, err = freePort(o.Host); err != nil {
		return nil, err
	}
	r.dir = filepath.Join(k.Dir(), "redis-"+strconv.Itoa(r.port))
	if err := os.MkdirAll(r.data(), 0o700); err != nil {
		return nil, err
	}
	opts, err := queue.ParseURL(r.URL())
	if err != nil {
		return nil, err
	}
	r.rdb = redis.NewClient(opts)
	defer func() {
		if err != nil {
			r.Kill()
			err = errors.Join(err, r.Close())
		}
	}()
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return r, r.ask(ctx)
}

// ask finds out what server it is.
func (r *Redis) ask(ctx context.Context) error {
	c, err := queue.New(r.rdb, queue.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	r.about, err = c.Server(ctx)
	if errors.Is(err, queue.ErrReadOnly) { // a replica
		return nil
	}
	return err
}

// URL is its address as redis://, the same over restarts.
func (r *Redis) URL() string { return "redis://" + r.Addr() }

// Addr is its address as host:port.
func (r *Redis) Addr() string { return net.JoinHostPort(r.o.Host, strconv.Itoa(r.port)) }

// Name is program and version, such as "redis-server 7.0.15".
func (r *Redis) Name() string { return r.about.Name() }

// Dir is where all its files are, its AOF and the snapshot.
func (r *Redis) Dir() string { return r.dir }

func (r *Redis) data() string     { return filepath.Join(r.dir, "data") }
func (r *Redis) snapshot() string { return filepath.Join(r.dir, "snapshot") }

// Fsync is how often the AOF is synced: always, everysec or no.
func (r *Redis) Fsync() string { return r.o.Fsync }

// Close gives up the connections to it; the kennel ends the process.
func (r *Redis) Close() error { return r.rdb.Close() }

// Kill ends the server as kill -9 does, also one that is paused, and waits until
// it is gone.
func (r *Redis) Kill() {
	if c := r.process(); c != nil {
		c.Kill()
	}
}

// Restart starts it again on the same address with what it kept, and waits until
// it has loaded that. One that runs is killed first. It is neither full nor
// paused any more.
func (r *Redis) Restart(ctx context.Context) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	return r.restart(ctx)
}

func (r *Redis) restart(ctx context.Context) error {
	r.Kill()
	if err := r.run(ctx); err != nil {
		return fmt.Errorf("restart of Redis at %s: %w", r.Addr(), err)
	}
	return nil
}

// Pause freezes the server (SIGSTOP): connections stay, nothing answers.
func (r *Redis) Pause() { r.process().Stop() }

// Resume lets it go on.
func (r *Redis) Resume() { r.process().Cont() }

func (r *Redis) process() *process.Child {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.child
}

// enterScript makes the signal of a file that may not grow a mere error, see
// Disk.
const enterScript = `trap '' XFSZ && exec "$@"`

// run starts the process and waits until it serves.
func (r *Redis) run(ctx context.Context) error {
	args := []string{
		"--port", strconv.Itoa(r.port), "--bind", r.o.Host, "--protected-mode", "no", "--dir", r.data(), "--daemonize", "no",
		"--save", "", "--appendonly", "yes", "--appendfsync", r.o.Fsync, "--auto-aof-rewrite-percentage", "0",
	}
	if r.delay > 0 {
		args = append(args, "--key-load-delay", strconv.FormatInt(r.delay.Microseconds(), 10))
	}
	r.mu.Lock()
	if r.master != "" {
		args = append(append(args, "--replicaof"), strings.Fields(r.master)...)
	}
	r.mu.Unlock()
	child, err := r.kennel.Start(process.Command{
		Name: r.o.Name, Program: "/bin/sh", Args: append(append([]string{"-c", enterScript, r.o.Name, r.o.Program}, args...), r.o.Args...),
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.child, r.memory = child, ""
	r.mu.Unlock()
	ours := fmt.Sprintf("process_id:%d\r\n", child.PID())
	return await(ctx, child, func(ctx context.Context) error {
		if err := knock(ctx, r.Addr()); err != nil { // asked first: go-redis would print that nobody listens yet
			return err
		}
		if err := r.rdb.Ping(ctx).Err(); err != nil { // not before all is loaded
			return err
		}
		info, err := r.rdb.Info(ctx, "server").Result()
		if err == nil && !strings.Contains(info, ours) {
			return errors.New("another server answers on its port")
		}
		return err
	})
}

// await asks until there is no error any more. It gives up when the process has
// ended.
func await(ctx context.Context, child *process.Child, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		asked, done := context.WithTimeout(ctx, 2*time.Second) // who does not answer may have ended meanwhile
		err := ask(asked)
		done()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // else it only says that the time is over
			last = err
		}
		select {
		case <-child.Ended():
			return fmt.Errorf("it ended by itself: %s", child.LastWords(5))
		case <-ctx.Done():
			return fmt.Errorf("%w: %w; it said: %s", context.Cause(ctx), last, child.LastWords(5))
		case <-tick.C:
		}
	}
}

func knock(ctx context.Context, addr string) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// Ports for servers: below what the kernels give to clients, since a client that
// dials a dead port of that range may connect to itself; away from ports that
// people know.
const lowPort, highPort = 20000, 32000

func freePort(host string) (int, error) {
	var err error
	for range 100 {
		port := lowPort + rand.IntN(highPort-lowPort)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d: %w", lowPort, highPort, err)
}
