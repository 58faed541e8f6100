package queue

import (
	"errors"
	"strings"
	"testing"
)

// serverSamples are parts of INFO as these servers give it.
var serverSamples = map[string]Server{
	"# Server\r\nredis_version:6.2.14\r\nredis_mode:standalone\r\n# Persistence\r\naof_enabled:0\r\n# Memory\r\nmaxmemory:1073741824\r\nmaxmemory_policy:allkeys-lru\r\n# Replication\r\nrole:master\r\nconnected_slaves:2\r\n# Cluster\r\ncluster_enabled:0\r\n": {
		Engine: "redis", Version: "6.2.14", Role: "master", RDB: true, Eviction: "allkeys-lru", MaxBytes: 1 << 30, Replicas: 2},
	"# Server\r\nredis_version:7.0.15\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\nmaxmemory:0\r\nrole:slave\r\nconnected_slaves:0\r\ncluster_enabled:1\r\n": {
		Engine: "redis", Version: "7.0.15", Role: "slave", Cluster: true, AOF: true, RDB: true, Eviction: "noeviction"},
	"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nvalkey_release_stage:ga\r\naof_enabled:1\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n": {
		Engine: "valkey", Version: "8.1.1", Role: "master", AOF: true, RDB: true, Eviction: "noeviction"},
	"# Clients\nconnected_clients:1\r\n# Stats\ntotal_connections_received:3\r\ntotal_commands_processed:9\r\n": {Engine: "miniredis"},
	"": {Engine: "miniredis"},
}

func TestWhatRedisSaysOfItselfIsRead(t *testing.T) {
	t.Parallel()
	for info, want := range serverSamples {
		if got := parseServer(info); got != want {
			t.Errorf("from %q\ngot  %+v\nwant %+v", info, got, want)
		}
	}
}

func TestWarningsNameWhatEndangersJobs(t *testing.T) {
	t.Parallel()
	sound := Server{Engine: "redis", Version: "7.0.15", Role: "master", AOF: true, RDB: true, Fsync: "everysec", Eviction: "noeviction"}
	for name, tt := range map[string]struct {
		change func(*Server)
		word   string // in the only warning; "": none
	}{
		"an AOF and no eviction is sound":     {func(*Server) {}, ""},
		"nothing is kept":                     {func(s *Server) { s.AOF, s.RDB = false, false }, "loses all jobs"},
		"snapshots only":                      {func(s *Server) { s.AOF = false }, "snapshots only"},
		"an AOF that is never synced":         {func(s *Server) { s.Fsync = "no" }, "appendfsync"},
		"a policy that evicts":                {func(s *Server) { s.Eviction = "volatile-ttl" }, "volatile-ttl"},
		"an embedded store":                   {func(s *Server) { *s = Server{Engine: "miniredis"} }, "not durable"},
		"a policy that cannot be seen is not": {func(s *Server) { s.Eviction = "" }, ""},
	} {
		s := sound
		tt.change(&s)
		got := s.Warnings()
		if tt.word == "" && len(got) != 0 || tt.word != "" && (len(got) != 1 || !strings.Contains(got[0], tt.word)) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := sound.String(); got != "redis-server 7.0.15, master, AOF with appendfsync everysec, maxmemory-policy noeviction, 0 replicas" {
		t.Errorf("in one line: %q", got)
	}
	for version, old := range map[string]bool{"6.0.16": true, "5.0.7": true, "6.2.0": false, "7.0.15": false, "10.1": false} {
		if got := (Server{Engine: "redis", Version: version}).TooOld(); got != old {
			t.Errorf("redis %s too old: %v", version, got)
		}
	}
}

func TestServerAsksTheRealThing(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		got, err := s.c.Server(s.ctx)
		s.ok(err)
		if got.Embedded() != (s.kind == "miniredis") || got.TooOld() || got.Evicts() {
			t.Errorf("server %+v", got)
		}
		s.needs("config")
		if got.Role != "master" || got.Fsync == "" || got.Version == "" || got.Name() == "" {
			t.Errorf("server %+v", got)
		}
	})
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for url, addr := range map[string]string{"redis://h:1234/3": "h:1234", "redis://": "localhost:6379", "rediss://u:p@h": "h:6379", "unix:///tmp/r.sock?db=2": "/tmp/r.sock"} {
		o, err := ParseURL(url)
		if err != nil || o.Addr != addr {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if strings.HasPrefix(url, "rediss") != (o.TLSConfig != nil) {
			t.Errorf("%s: TLS %v", url, o.TLSConfig)
		}
	}
	for _, url := range []string{"", "h:6379", "http://h", "redis://h/notanumber", "redis://:secret@h/x", "redis://:secret@%zz", "mysql://:secret@h", "u:secret@h:6379", ":secret@h", "//u:secret@h"} {
		_, err := ParseURL(url)
		if !errors.Is(err, ErrBadInput) || !strings.Contains(err.Error(), "redis://") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
