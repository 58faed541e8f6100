package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/kelpiehq/kelpie/queue"
)

const defaultRedis = "redis://127.0.0.1:6379"

// space is where the job space is: the flags that every command has which asks
// Redis.
type space struct {
	redis  redisURL
	prefix string
}

func (s *space) flags(cmd *cobra.Command) {
	s.redis.text = defaultRedis
	cmd.Flags().Var(&s.redis, "redis", "address of Redis: redis://[user:password@]host:port[/db], rediss://... (TLS), unix:///path, or redis+sentinel://host:port,host:port/MASTER")
	cmd.Flags().Var(nameFlag(&s.prefix, "prefix", "kelpie"), "prefix", "name of the job space: first part of every key, and label of the gossip")
}

// redisURL is an address that is never shown with its password.
type redisURL struct{ text string }

func (*redisURL) secret()      {}
func (*redisURL) Type() string { return "URL" }

func (r *redisURL) String() string {
	if r.text == "" || r.text == defaultRedis {
		return r.text
	}
	return "..."
}

var errURL = errors.New("must be redis://[user:password@]host:port[/db], rediss://..., unix:///path or redis+sentinel://host:port,.../MASTER, special characters of a password percent-encoded")

// Set refuses what cannot be an address. It repeats nothing of a text that it
// does not understand, because any part of that may be a password.
func (r *redisURL) Set(s string) error {
	network, addrs, err := queue.Endpoints(s)
	if err != nil {
		return errURL
	}
	for _, addr := range addrs {
		if network == "unix" {
			if strings.Trim(addr, "/") == "" {
				return errURL
			}
			continue
		}
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return errURL
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("port %s: must be 1 to 65535", port)
		}
	}
	r.text = s
	return nil
}

// access is what a command is about to do with the job space.
type access int

const (
	reads access = iota
	writes
)

// connect opens the job space and asks once what Redis this is, so that each
// fault of the whole is told in one sentence before anything is read or sent.
// The caller calls close.
func (s *space) connect(ctx context.Context, a access) (c *queue.Client, closeAll func(), err error) {
	redis.SetLogger(noLog{})
	rdb, err := queue.Connect(s.redis.text)
	if err != nil {
		return nil, nil, usage("--redis: %w", errURL)
	}
	c, err = queue.New(rdb, queue.Options{Prefix: s.prefix})
	if err != nil {
		_ = rdb.Close()
		return nil, nil, err
	}
	closeAll = func() {
		_ = c.Close()
		_ = rdb.Close()
	}
	err = s.look(ctx, c, a)
	if err == nil {
		err = s.checkFormat(ctx, c)
	}
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return c, closeAll, nil
}

func (s *space) look(ctx context.Context, c *queue.Client, a access) error {
	server, err := c.Server(ctx)
	switch {
	case errors.Is(err, queue.ErrRefused) && strings.Contains(err.Error(), "NOPERM"):
		return nil // a user who may not ask may still do what it came for
	case errors.Is(err, queue.ErrReadOnly) && a == reads:
		return nil
	case err != nil && s.explain(err) != err:
		return s.explain(err)
	case err != nil:
		return failed("Redis at %s answers: %s", s.address(), lastOf(err))
	case server.TooOld():
		return newFault(exitConfig, "", "Redis at %s is %s: at least %s is needed", s.address(), server.Name(), queue.MinVersion)
	}
	return nil
}

// checkFormat refuses data of another major version before anything is read.
func (s *space) checkFormat(ctx context.Context, c *queue.Client) error {
	if err := c.CheckFormat(ctx); errors.Is(err, queue.ErrFormat) {
		return newFault(exitConfig, "use the kelpie of the same major version as the nodes", "job space %s: %s", s.prefix, lastOf(err))
	}
	return nil // the command itself will say what else is wrong
}

// explain turns a fault of Redis as a whole into one sentence with its address.
func (s *space) explain(err error) error {
	at := s.address()
	switch {
	case err == nil, errors.Is(err, queue.ErrUnknown), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, queue.ErrUnreachable), errors.Is(err, queue.ErrBusy), errors.Is(err, context.DeadlineExceeded):
		return unreachable(at, err)
	case errors.Is(err, queue.ErrRefused):
		return newFault(exitRefused, "user and password stand in the address, redis://user:password@host:port, or in KELPIE_REDIS",
			"Redis at %s refused: %s", at, lastOf(err))
	case errors.Is(err, queue.ErrReadOnly):
		return newFault(exitFailed, "nothing was written; --redis must name the master",
			"Redis at %s takes no writes: %s", at, lastOf(err))
	case errors.Is(err, queue.ErrFull):
		return newFault(exitFailed, "nothing was written; raise maxmemory, or let the nodes work off what is there",
			"Redis at %s is out of memory: %s", at, lastOf(err))
	case errors.Is(err, queue.ErrCluster):
		return newFault(exitConfig, "", "Redis at %s runs in cluster mode, which is not supported", at)
	}
	return err
}

// address is the place without user and password.
func (s *space) address() string {
	_, addrs, err := queue.Endpoints(s.redis.text)
	if err != nil {
		return "?"
	}
	return strings.Join(addrs, ",")
}

// noLog drops what the Redis library would print: every fault comes back as an
// error.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}
