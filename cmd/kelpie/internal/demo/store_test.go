package demo

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault/server"
	"github.com/kelpiehq/kelpie/chaos/process"
)

// fakeServer puts a program on the PATH that only knows its version.
func fakeServer(t *testing.T, dir, name, banner string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+banner+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutAServerTheStoreIsInThisProcess(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s, err := openStore(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.name != "miniredis" || s.real() || barsOf(s).late != 0 {
		t.Errorf("store %+v", s)
	}
	if err := s.rdb.Set(t.Context(), "k", "v", 50*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if err := await(t.Context(), func() (bool, error) { return s.rdb.Exists(t.Context(), "k").Val() == 0, nil }); err != nil {
		t.Errorf("a key with a time to live never went: %v", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	dir := t.TempDir()
	fakeServer(t, dir, "redis-server", "Redis server v=7.0.15 sha=0") // and ends
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	k, err := process.Open(process.Options{Name: "kelpie-demo"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(t.Context(), k); err == nil || !strings.Contains(err.Error(), "it ended by itself: Redis server v=7.0.15") {
		t.Errorf("openStore = %v, want what the server said", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheKennelStopsTheServerAndRemovesItsFiles(t *testing.T) {
	t.Parallel()
	program, _ := server.Find(t.Context())
	if program == "" {
		t.Log("no redis-server on the PATH: nothing to stop") // the demo runs without one as well
		return
	}
	k, err := process.Open(process.Options{Name: "kelpie-demo"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.name, "-server ") || !strings.HasPrefix(s.detail, "AOF with appendfsync everysec") || barsOf(s).late == 0 {
		t.Errorf("store %q, %q", s.name, s.detail)
	}
	addr := s.rdb.Options().Addr
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Errorf("%s still answers", addr)
	}
	if _, err := os.Stat(k.Dir()); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}
