package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// TestScripts runs testdata/*.txtar. Each script has a job space of its own on
// one Redis (KELPIE_REDIS, KELPIE_PREFIX). Commands besides those of
// testscript:
//
//	exits CODE COMMAND ARGS...  run it and compare its exit code
//	server NAME [CONFIG...]     start a Redis of this script's own: $NAME is its
//	                            URL, $NAME_ADDR its host:port
//	pause NAME                  stop a server of this script in its tracks
//	redis [URL] COMMAND...      ask a Redis; the answer is stdout
//	repeat N FILE TEXT          write TEXT N times, %d in it is the number
//	eventually COMMAND ARGS...  until the last line of its stdout is the word true
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	shared := redistest.Dedicated(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, shared: shared, own: map[string]*redistest.Server{}}
			testscript.Run(t, testscript.Params{
				Files: []string{file}, Setup: w.setup, RequireExplicitExec: true, RequireUniqueNames: true,
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"exits": w.exits, "server": w.server, "pause": w.pause, "redis": w.redis, "repeat": w.repeat, "eventually": w.eventually,
				},
			})
		})
	}
}

// world is what one script sees.
type world struct {
	t      *testing.T
	shared *redistest.Server
	own    map[string]*redistest.Server
}

func (w *world) setup(e *testscript.Env) error {
	e.Setenv("KELPIE_REDIS", w.shared.URL())
	e.Setenv("KELPIE_PREFIX", redistest.Prefix(w.t))
	e.Setenv("REDIS_ADDR", w.shared.Addr())
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		e.Setenv("GOCOVERDIR", dir)
	}
	return nil
}

func (w *world) exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func (w *world) server(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args)%2 != 1 {
		ts.Fatalf("usage: server NAME [CONFIG VALUE]...")
	}
	s := redistest.Dedicated(w.t, redistest.WithArgs(args[1:]...))
	w.own[args[0]] = s
	ts.Setenv(args[0], s.URL())
	ts.Setenv(args[0]+"_ADDR", s.Addr())
	host, port, _ := strings.Cut(s.Addr(), ":")
	ts.Setenv(args[0]+"_HOST", host)
	ts.Setenv(args[0]+"_PORT", port)
}

func (w *world) pause(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || w.own[args[0]] == nil {
		ts.Fatalf("usage: pause NAME")
	}
	w.own[args[0]].Pause()
}

func (w *world) redis(ts *testscript.TestScript, neg bool, args []string) {
	url := ts.Getenv("KELPIE_REDIS")
	if len(args) > 0 && strings.HasPrefix(args[0], "redis://") {
		url, args = args[0], args[1:]
	}
	o, err := redis.ParseURL(url)
	ts.Check(err)
	rdb := redis.NewClient(o)
	defer rdb.Close()
	command := make([]any, len(args))
	for i, a := range args {
		command[i] = a
	}
	v, err := rdb.Do(w.t.Context(), command...).Result()
	if (err != nil && !errors.Is(err, redis.Nil)) != neg {
		ts.Fatalf("redis %v: %v", args, err)
	}
	fmt.Fprintln(ts.Stdout(), v)
}

func (w *world) repeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat N FILE TEXT")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	if !strings.Contains(args[2], "%d") {
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Repeat(args[2], n)), 0o600))
		return
	}
	var b bytes.Buffer
	for i := range n {
		b.WriteString(strings.ReplaceAll(args[2], "%d", strconv.Itoa(i)) + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o600))
}

// eventually asks every 20 ms, for 20 s: processes of others are waited for, and
// they tell nobody.
func (w *world) eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually COMMAND ARGS...")
	}
	until := time.NewTimer(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer until.Stop()
	defer tick.Stop()
	for {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil && strings.HasSuffix(strings.TrimSpace(ts.ReadFile("stdout")), "true") {
			return
		}
		select {
		case <-until.C:
			ts.Fatalf("not true after 20 s: %v", err)
		case <-tick.C:
		}
	}
}
