package server

import (
	"context"
	"errors"

	"github.com/kelpiehq/kelpie/chaos/process"
)

// Sentinel is a master with two replicas, and three Sentinels that watch them.
type Sentinel struct{}

// StartSentinel starts all six and waits until the Sentinels know each other and
// both replicas have the master's data.
func StartSentinel(ctx context.Context, k *process.Kennel, o Options) (*Sentinel, error) {
	return nil, errors.ErrUnsupported
}

// URL is redis+sentinel://host:port,host:port,host:port/mymaster.
func (s *Sentinel) URL() string { return "" }

// Servers are the three servers; which one is the master changes.
func (s *Sentinel) Servers() []*Redis { return nil }

// Master asks the Sentinels which server is the master.
func (s *Sentinel) Master(ctx context.Context) (*Redis, error) { return nil, errors.ErrUnsupported }

// Failover kills the master as kill -9 does, waits until another one has its
// place, starts the killed one as a replica and waits until it has the data. It
// returns the new master.
func (s *Sentinel) Failover(ctx context.Context) (*Redis, error) { return nil, errors.ErrUnsupported }

// Close gives up the connections to all; the kennel ends the processes.
func (s *Sentinel) Close() error { return nil }
