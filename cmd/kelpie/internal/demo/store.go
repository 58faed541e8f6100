package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/fault/server"
	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/queue"
)

// store is the Redis of the demo.
type store struct {
	url      string
	name     string        // "redis-server 7.0.15", "valkey-server 8.1.1" or "miniredis"
	detail   string        // a sentence on what it is and keeps
	server   *server.Redis // nil for miniredis
	embedded *miniredis.Miniredis
	rdb      *redis.Client
}

// real tells if it is a server of its own and not one in this process.
func (s *store) real() bool { return s.server != nil }

// openStore starts the first server on the PATH that is new enough, or else a
// miniredis. The kennel ends the server; close ends the rest.
func openStore(ctx context.Context, k *process.Kennel) (*store, error) {
	program, tooOld := server.Find(ctx)
	if program == "" {
		return openEmbedded(tooOld)
	}
	r, err := server.Start(ctx, k, server.Options{Program: program})
	if err != nil {
		return nil, err
	}
	s := &store{url: r.URL(), name: r.Name(), server: r}
	s.detail = "AOF with appendfsync " + r.Fsync() + " in " + r.Dir()
	return s, s.connect()
}

func openEmbedded(tooOld string) (*store, error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("miniredis: %w", err)
	}
	s := &store{url: "redis://" + m.Addr(), name: "miniredis", embedded: m}
	s.detail = "embedded in this process, which the faults spare; it keeps nothing"
	if tooOld != "" {
		s.detail += " (" + tooOld + ")"
	}
	return s, s.connect()
}

func (s *store) connect() (err error) {
	s.rdb, err = queue.Connect(s.url)
	return err
}

// close ends what the kennel does not own.
func (s *store) close() error {
	err := s.rdb.Close()
	if s.embedded != nil {
		s.embedded.Close()
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Close())
	}
	return err
}
