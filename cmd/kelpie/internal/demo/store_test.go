package demo

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/process"
)

// fakeServer puts a program on the PATH that only knows its version.
func fakeServer(t *testing.T, dir, name, banner string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+banner+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestTheServerIsFoundOnThePath(t *testing.T) {
	for name, tt := range map[string]struct {
		there  map[string]string
		want   string
		tooOld string
	}{
		"a redis-server":                        {map[string]string{"redis-server": "Redis server v=7.0.15 sha=0"}, "redis-server", ""},
		"a valkey-server is as good":            {map[string]string{"valkey-server": "Valkey server v=8.1.1 sha=0"}, "valkey-server", ""},
		"6.2 is new enough":                     {map[string]string{"redis-server": "Redis server v=6.2.0 sha=0"}, "redis-server", ""},
		"one that is too old is passed over":    {map[string]string{"redis-server": "Redis server v=6.0.16 sha=0", "valkey-server": "Valkey server v=7.2.5 sha=0"}, "valkey-server", ""},
		"only one that is too old is none":      {map[string]string{"redis-server": "Redis server v=6.0.16 sha=0"}, "", "is 6.0.16, 6.2 is needed"},
		"one without a version is none":         {map[string]string{"redis-server": "hello"}, "", "of an unknown version"},
		"nothing is nothing, and no word of it": {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, banner := range tt.there {
				fakeServer(t, dir, file, banner)
			}
			t.Setenv("PATH", dir)
			program, tooOld := findServer(t.Context())
			if want := filepath.Join(dir, tt.want); tt.want != "" && program != want || tt.want == "" && program != "" {
				t.Errorf("findServer = %q, want %q", program, tt.want)
			}
			if !strings.Contains(tooOld, tt.tooOld) || tt.tooOld == "" && tooOld != "" {
				t.Errorf("the word on it is %q, want %q", tooOld, tt.tooOld)
			}
		})
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
	program, _ := findServer(t.Context())
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
