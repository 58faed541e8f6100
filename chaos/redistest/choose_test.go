package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program writes a fake server that prints banner, and returns its path.
func program(t *testing.T, dir, name, banner string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	text := fmt.Sprintf("#!/bin/sh\necho '%s'\n", banner)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestChoose(t *testing.T) {
	const redis60, redis62, valkey = "Redis server v=6.0.16 sha=0", "Redis server v=6.2.0 sha=0", "Valkey server v=8.1.1 sha=0"
	for name, tt := range map[string]struct {
		env     map[string]string
		onPath  map[string]string // program: its banner
		want    string            // what is started: an image, or a program on the PATH
		wantErr string
	}{
		"a server on the PATH is taken":                {onPath: map[string]string{"redis-server": redis62}, want: "redis-server"},
		"a Valkey is as good":                          {onPath: map[string]string{"valkey-server": valkey}, want: "valkey-server"},
		"one that is too old is passed over":           {onPath: map[string]string{"redis-server": redis60, "valkey-server": valkey}, want: "valkey-server"},
		"only one that is too old counts as no":        {env: map[string]string{"KELPIE_TEST_BACKEND": "process"}, onPath: map[string]string{"redis-server": redis60}, wantErr: "is 6.0, which is too old"},
		"with nothing there the error says what to do": {env: map[string]string{"KELPIE_TEST_BACKEND": "process"}, wantErr: `run "make test", which installs one`},
		"the environment asks for a container":         {env: map[string]string{"KELPIE_TEST_BACKEND": "container"}, want: "redis:7-alpine"},
		"and for its image":                            {env: map[string]string{"KELPIE_TEST_BACKEND": "container", "KELPIE_TEST_IMAGE": "valkey/valkey:8"}, want: "valkey/valkey:8"},
		"an unknown backend is refused":                {env: map[string]string{"KELPIE_TEST_BACKEND": "cloud"}, wantErr: `"cloud": must be process or container`},
		"a named program that is not there is an error": {
			env:    map[string]string{"KELPIE_TEST_REDIS": "/nowhere/redis-server", "KELPIE_TEST_BACKEND": "process"},
			onPath: map[string]string{"redis-server": redis62}, wantErr: "KELPIE_TEST_REDIS /nowhere/redis-server",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir) // away from the module's own .cache/bin
			for name, banner := range tt.onPath {
				program(t, dir, name, banner)
			}
			t.Setenv("PATH", dir)
			for _, name := range []string{"KELPIE_TEST_BACKEND", "KELPIE_TEST_REDIS", "KELPIE_TEST_IMAGE"} {
				t.Setenv(name, tt.env[name])
			}
			p, err := choose()
			got := p.image
			if p.program != "" {
				got = filepath.Base(p.program)
			}
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("choose() = %q, %v, want an error with %q", got, err, tt.wantErr)
				}
				return
			}
			if err != nil || got != tt.want || p.container != (p.program == "") {
				t.Errorf("choose() = %+v, %v, want %q", p, err, tt.want)
			}
		})
	}
}

func TestTheServerBesideGoModIsFound(t *testing.T) {
	root := t.TempDir()
	sub := filepath.Join(root, "queue", "lua")
	bin := filepath.Join(root, ".cache", "bin")
	for _, dir := range []string{sub, bin} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	want := program(t, bin, "redis-server", "Redis server v=7.0.15 sha=0")
	t.Chdir(sub)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("KELPIE_TEST_REDIS", "")
	if p, err := chooseProgram(); err != nil || p.program != want {
		t.Errorf("chooseProgram() = %q, %v, want %q", p.program, err, want)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		banner string
		want   string
		ok     bool
	}{
		"Redis":              {"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1", "7.0", true},
		"Valkey":             {"Valkey server v=8.1.1 sha=00000000:0 malloc=libc bits=64 build=2", "8.1", true},
		"two digits":         {"Redis server v=10.12.0 sha=0", "10.12", true},
		"something else":     {"fancy server 2.0", "", false},
		"a number too large": {"v=99999999999999999999.0", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := parseBanner(tt.banner)
			if (err == nil) != tt.ok || tt.ok && v.String() != tt.want {
				t.Errorf("parseBanner = %v, %v, want %s", v, err, tt.want)
			}
		})
	}
	if got := versionFromInfo("# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.1\r\n"); got != "8.1.1" {
		t.Errorf("Valkey's version is %q, want its own", got)
	}
	if !(version{6, 0}).less(oldest) || (version{6, 2}).less(oldest) || (version{10, 0}).less(oldest) {
		t.Error("6.0 must be too old, 6.2 and 10.0 must not")
	}
}

func TestBadOptionsAreRefusedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]Option{
		"an unknown fsync policy": WithAOF("sometimes"),
		"a name without a value":  WithArgs("maxmemory"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := launch([]Option{opt}); err == nil {
				t.Error("was allowed")
			}
		})
	}
}

func TestAServerThatRefusesItsConfigurationSaysWhy(t *testing.T) {
	t.Parallel()
	if _, err := chooseProgram(); err != nil {
		t.Log("only a process tells its lines") // a container's are in docker logs
		return
	}
	_, err := launch([]Option{WithArgs("no-such-setting", "1")})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("launch = %v, want the server's own words", err)
	}
}
