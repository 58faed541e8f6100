package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeServer puts a program into a folder that only knows its version.
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
			program, tooOld := Find(t.Context())
			if want := filepath.Join(dir, tt.want); tt.want != "" && program != want || tt.want == "" && program != "" {
				t.Errorf("Find = %q, want %q", program, tt.want)
			}
			if !strings.Contains(tooOld, tt.tooOld) || tt.tooOld == "" && tooOld != "" {
				t.Errorf("the word on it is %q, want %q", tooOld, tt.tooOld)
			}
		})
	}
}

func TestWithoutAServerTheErrorSaysWhatIsNeeded(t *testing.T) {
	for name, tt := range map[string]struct{ banner, want string }{
		"none":             {"", "neither redis-server nor valkey-server is on the PATH; 6.2 or later is needed"},
		"one that is old":  {"Redis server v=6.0.16 sha=0", "is 6.0.16, 6.2 is needed"},
		"one that is lame": {"Redis server v=7.0.15 sha=0", "it ended by itself: Redis server v=7.0.15"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			k := openKennel(t)
			if tt.banner != "" {
				fakeServer(t, dir, "redis-server", tt.banner)
			}
			t.Setenv("PATH", dir)
			if _, err := Start(t.Context(), k, Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Start = %v, want %q", err, tt.want)
			}
		})
	}
}
