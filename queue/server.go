package queue

import (
	"context"
	"fmt"
	"strings"
)

// Server is what kind of Redis this is, as far as it matters to jobs.
type Server struct {
	Engine   string // redis, valkey or miniredis
	Version  string
	Role     string // master or slave
	Cluster  bool
	AOF      bool
	Fsync    string // appendfsync, "" where CONFIG is not allowed
	RDB      bool   // snapshots are taken
	Eviction string // maxmemory-policy
	MaxBytes int64  // maxmemory, 0: none
	Replicas int
}

// Embedded reports an in-process store, which keeps nothing.
func (s Server) Embedded() bool { return s.Engine == "miniredis" }

// Evicts reports a policy by which Redis throws jobs away when it is full.
func (s Server) Evicts() bool { return s.Eviction != "" && s.Eviction != "noeviction" }

// Name is the program and its version, such as "redis-server 7.0.15".
func (s Server) Name() string {
	if s.Embedded() {
		return s.Engine
	}
	return s.Engine + "-server " + s.Version
}

// String says in one line what was found.
func (s Server) String() string {
	if s.Embedded() {
		return "miniredis: embedded, not durable"
	}
	keeps := "keeps nothing"
	switch {
	case s.AOF:
		keeps = "AOF"
		if s.Fsync != "" {
			keeps += " with appendfsync " + s.Fsync
		}
	case s.RDB:
		keeps = "RDB snapshots only"
	}
	return fmt.Sprintf("%s, %s, %s, maxmemory-policy %s, %d replicas", s.Name(), s.Role, keeps, or(s.Eviction, "unknown"), s.Replicas)
}

// Warnings says, a sentence each, what endangers jobs here.
func (s Server) Warnings() []string {
	if s.Embedded() {
		return []string{"the store is embedded and not durable: all jobs are gone when this process ends"}
	}
	var w []string
	if !s.AOF && !s.RDB {
		w = append(w, "Redis keeps nothing: a restart of it loses all jobs; set appendonly yes")
	}
	if !s.AOF && s.RDB {
		w = append(w, "Redis keeps snapshots only: a crash of it loses the jobs since the last one; set appendonly yes")
	}
	if s.AOF && s.Fsync == "no" {
		w = append(w, "appendfsync is no: a crash of the machine may lose many seconds of jobs; set everysec or always")
	}
	if s.Evicts() {
		w = append(w, fmt.Sprintf("maxmemory-policy is %s: Redis throws jobs away when it is full; set noeviction", s.Eviction))
	}
	return w
}

// Server asks what Redis this is. ErrReadOnly: a replica; ErrCluster: cluster
// mode; in both cases the Server is returned as well.
func (c *Client) Server(ctx context.Context) (Server, error) {
	info, err := c.rdb.Info(ctx).Result()
	if err != nil {
		return Server{}, wrap("ask Redis", "", "", err)
	}
	s := parseServer(info)
	if s.Engine == "miniredis" {
		return s, nil
	}
	if fsync, err := c.rdb.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		s.Fsync = fsync["appendfsync"]
	}
	if save, err := c.rdb.ConfigGet(ctx, "save").Result(); err == nil {
		s.RDB = save["save"] != ""
	}
	switch {
	case s.Cluster:
		return s, wrap("ask Redis", "", "", ErrCluster)
	case s.Role != "master":
		return s, wrap("ask Redis", "", "", fmt.Errorf("%w: it is a replica", ErrReadOnly))
	}
	return s, nil
}

// parseServer reads INFO. miniredis answers with clients and stats only, so no
// version means miniredis.
func parseServer(info string) Server {
	f := map[string]string{}
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[k] = v
		}
	}
	s := Server{
		Engine: "redis", Version: f["redis_version"], Role: f["role"], Cluster: f["cluster_enabled"] == "1",
		AOF: f["aof_enabled"] == "1", Eviction: f["maxmemory_policy"], MaxBytes: parseInt(f["maxmemory"]),
		Replicas: int(parseInt(f["connected_slaves"])), RDB: true,
	}
	if v := f["valkey_version"]; v != "" {
		s.Engine, s.Version = "valkey", v
	}
	if s.Version == "" {
		return Server{Engine: "miniredis"}
	}
	return s
}

// MinVersion is the oldest Redis that has the commands which the scripts use.
const MinVersion = "6.2"

// TooOld reports a Redis below MinVersion.
func (s Server) TooOld() bool {
	var major, minor int
	if _, err := fmt.Sscanf(s.Version, "%d.%d", &major, &minor); err != nil || s.Engine != "redis" {
		return false
	}
	return major < 6 || major == 6 && minor < 2
}
