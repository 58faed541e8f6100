package redistest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the fake programs of TestFind do. A package manager leaves a trace of
// its arguments, and "installs" by writing programs of its own.
const (
	redis60  = `echo "Redis server v=6.0.16 sha=0"`
	redis62  = `echo "Redis server v=6.2.0 sha=0"`
	redis70  = `echo "Redis server v=7.0.15 sha=0"`
	valkey81 = `echo "Valkey server v=8.1.1 sha=0"`
	rdbOr70  = `case $0 in *redis-server) echo "Redis server v=7.0.15 sha=0" ;; *) exit 1 ;; esac`
	rdbOr60  = `case $0 in *redis-server) echo "Redis server v=6.0.16 sha=0" ;; *) exit 1 ;; esac`
	refuses  = `exit 1`
	hangs    = `exec sleep 60`
	answers  = `exit 0`
	isRoot   = `echo 0`
	isUser   = `echo 1000`
	runs     = `shift; "$@"` // sudo -n COMMAND
	installs = `echo "$@" >>"$TRACE"; case $1 in
	install | add | -S | --non-interactive) cp "$STORE"/* "$HERE" ;; esac`
	nothing = `echo "$@" >>"$TRACE"` // a package manager that does not have it
)

type findCase struct {
	path   map[string]string // programs on the PATH
	store  map[string]string // programs that a package manager brings
	env    []string
	want   string   // stdout, with HERE for the PATH's directory and BIN for .cache/bin
	says   []string // in stderr
	traces string   // what the package manager was asked, its last line
	silent bool     // nothing may be on stderr
}

var findCases = map[string]findCase{
	"a server on the PATH is taken without a word": {
		path: map[string]string{"redis-server": redis70, "docker": answers, "apt-get": installs}, want: "process HERE/redis-server", silent: true,
	},
	"6.2 is just new enough":           {path: map[string]string{"redis-server": redis62}, want: "process HERE/redis-server", silent: true},
	"Valkey is as good":                {path: map[string]string{"valkey-server": valkey81}, want: "process HERE/valkey-server", silent: true},
	"6.0 counts as none, with a word":  {path: map[string]string{"redis-server": redis60, "docker": answers}, want: "container", says: []string{"redis-server is 6.0, which is too old"}},
	"a newer one behind it is found":   {path: map[string]string{"redis-server": redis60, "valkey-server": valkey81}, want: "process HERE/valkey-server"},
	"a broken server counts as none":   {path: map[string]string{"redis-server": refuses, "docker": answers}, want: "container"},
	"redis-check-rdb is the server":    {path: map[string]string{"redis-check-rdb": rdbOr70, "docker": answers}, want: "process BIN/redis-server"},
	"of 6.0 it is none either":         {path: map[string]string{"redis-check-rdb": rdbOr60, "docker": answers}, want: "container", says: []string{"is of Redis 6.0, which is too old"}},
	"a Docker engine that answers":     {path: map[string]string{"docker": answers, "apt-get": installs, "id": isRoot}, want: "container", silent: true},
	"one that hangs counts as none":    {path: map[string]string{"docker": hangs}, says: []string{"no Docker engine answers; install one of them"}},
	"one that refuses counts as none":  {path: map[string]string{"docker": refuses}, says: []string{"no Docker engine answers; install one of them"}},
	"the environment wants no process": {path: map[string]string{"redis-server": redis70, "docker": answers}, env: []string{"KELPIE_TEST_BACKEND=container"}, want: "container"},
	"or no container":                  {path: map[string]string{"docker": answers}, env: []string{"KELPIE_TEST_BACKEND=process"}, says: []string{"install one of them"}},
	"or what is not there": {
		path: map[string]string{"redis-server": redis70}, env: []string{"KELPIE_TEST_BACKEND=container"}, says: []string{"no Docker engine answers within 5 s"},
	},
	"or what does not exist":             {env: []string{"KELPIE_TEST_BACKEND=cloud"}, says: []string{"KELPIE_TEST_BACKEND=cloud: must be process or container"}},
	"a server is named":                  {path: map[string]string{"mine": redis70, "redis-server": redis70}, env: []string{"KELPIE_TEST_REDIS=HERE/mine"}, want: "process HERE/mine"},
	"a named one that is too old":        {path: map[string]string{"mine": redis60, "redis-server": redis70}, env: []string{"KELPIE_TEST_REDIS=HERE/mine"}, says: []string{"HERE/mine is not a redis-server or valkey-server of 6.2 or later"}},
	"without a package manager it fails": {says: []string{"no redis-server or valkey-server >= 6.2 on the PATH"}},
	"root installs redis-tools by apt-get, after saying so": {
		path: map[string]string{"apt-get": installs, "id": isRoot}, store: map[string]string{"redis-check-rdb": rdbOr70},
		want: "process BIN/redis-server", says: []string{"Installing one: apt-get update && DEBIAN_FRONTEND"}, traces: "install -y --no-install-recommends redis-tools",
	},
	"a user does so by sudo that does not ask": {
		path: map[string]string{"apt-get": installs, "id": isUser, "sudo": runs}, store: map[string]string{"redis-check-rdb": rdbOr70},
		want: "process BIN/redis-server", says: []string{"Installing one: sudo sh -c"}, traces: "install -y --no-install-recommends redis-tools",
	},
	"a user whose sudo would ask gets the command to type": {
		path: map[string]string{"apt-get": installs, "id": isUser, "sudo": refuses},
		says: []string{"let root do it: sudo sh -c 'apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-tools'"},
	},
	"a user without sudo gets it too": {path: map[string]string{"apt-get": installs, "id": isUser}, says: []string{"let root do it: apt-get update"}},
	"NO_INSTALL=1 refuses with the command": {
		path: map[string]string{"apt-get": installs, "id": isRoot}, env: []string{"NO_INSTALL=1"}, says: []string{"NO_INSTALL=1 forbids to install one, which would be: apt-get update &&"},
	},
	"a distribution whose Redis is too old is told so": {
		path: map[string]string{"apt-get": installs, "id": isRoot}, store: map[string]string{"redis-check-rdb": rdbOr60},
		says: []string{"is of Redis 6.0, which is too old", "is not a Redis of 6.2 or later: start a Docker engine"}, traces: "install -y --no-install-recommends redis-tools",
	},
	"a package manager that fails":  {path: map[string]string{"apt-get": refuses, "id": isRoot}, says: []string{"could not install a Redis"}},
	"dnf":                           {path: map[string]string{"dnf": installs, "id": isRoot}, store: map[string]string{"valkey-server": valkey81}, want: "process HERE/valkey-server", traces: "install -y valkey"},
	"apk":                           {path: map[string]string{"apk": installs, "id": isRoot}, store: map[string]string{"valkey-server": valkey81}, want: "process HERE/valkey-server", traces: "add valkey"},
	"pacman":                        {path: map[string]string{"pacman": installs, "id": isRoot}, store: map[string]string{"valkey-server": valkey81}, want: "process HERE/valkey-server", traces: "-S --needed --noconfirm valkey"},
	"zypper":                        {path: map[string]string{"zypper": installs, "id": isRoot}, store: map[string]string{"redis-server": redis70}, want: "process HERE/redis-server", traces: "--non-interactive install valkey"},
	"brew is never run by sudo":     {path: map[string]string{"brew": installs, "id": isUser}, store: map[string]string{"redis-server": redis70}, want: "process HERE/redis-server", traces: "install redis"},
	"one that installs nothing new": {path: map[string]string{"brew": nothing, "id": isUser}, says: []string{"is not a Redis of 6.2 or later"}, traces: "install redis"},
}

func TestFind(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("find.sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range findCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFinder(t, script, tt)
			stdout, stderr, err := f.run()
			if got := strings.TrimSpace(stdout); got != f.place(tt.want) {
				t.Errorf("printed %q, want %q\nstderr: %s", got, f.place(tt.want), stderr)
			}
			if (err == nil) != (tt.want != "") {
				t.Errorf("ended with %v\nstderr: %s", err, stderr)
			}
			for _, words := range tt.says {
				if !strings.Contains(stderr, f.place(words)) {
					t.Errorf("does not say %q but %q", f.place(words), stderr)
				}
			}
			if tt.silent && stderr != "" {
				t.Errorf("says %q", stderr)
			}
			if got := f.asked(); got != tt.traces {
				t.Errorf("the package manager was asked %q, want %q", got, tt.traces)
			}
		})
	}
}

// finder runs find.sh in a world of fake programs.
type finder struct {
	cmd               *exec.Cmd
	here, bin, traced string
}

func newFinder(t *testing.T, script string, tt findCase) *finder {
	t.Helper()
	dir := t.TempDir()
	f := &finder{here: filepath.Join(dir, "here"), bin: filepath.Join(dir, "bin"), traced: filepath.Join(dir, "trace")}
	store := filepath.Join(dir, "store")
	for place, programs := range map[string]map[string]string{f.here: tt.path, store: tt.store} {
		if err := os.Mkdir(place, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, body := range programs {
			if err := os.WriteFile(filepath.Join(place, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tool := range []string{"sh", "dirname", "sed", "mkdir", "ln", "rm", "sleep", "cp", "id"} {
		real, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if _, faked := tt.path[tool]; faked {
			continue
		}
		if err := os.Symlink(real, filepath.Join(f.here, tool)); err != nil {
			t.Fatal(err)
		}
	}
	f.cmd = exec.CommandContext(t.Context(), "/bin/sh", script)
	f.cmd.Env = []string{"PATH=" + f.here, "KELPIE_TEST_BIN=" + f.bin, "TRACE=" + f.traced, "STORE=" + store, "HERE=" + f.here}
	for _, e := range tt.env {
		f.cmd.Env = append(f.cmd.Env, f.place(e))
	}
	return f
}

func (f *finder) run() (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	f.cmd.Stdout, f.cmd.Stderr = &out, &errs
	err = f.cmd.Run()
	return out.String(), errs.String(), err
}

// place puts this run's directories for HERE and BIN.
func (f *finder) place(s string) string {
	return strings.NewReplacer("HERE", f.here, "BIN/", f.bin+"/").Replace(s)
}

// asked returns the last thing that a package manager was asked.
func (f *finder) asked() string {
	text, _ := os.ReadFile(f.traced) // absent when none was
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
