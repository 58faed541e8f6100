package redistest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// engine answers what this package asks of a Docker engine. Its one image is
// the local redis-server; a container is a process in a directory of its own.
// It shows that the container backend asks for the right things in the right
// order, not what Docker makes of them.
type engine struct {
	program, dir string

	mu      sync.Mutex
	created int
	boxes   map[string]*box
}

// box is a container.
type box struct {
	dir    string
	args   []string // after the program's name
	port   string   // published
	cmd    *exec.Cmd
	ended  chan struct{}
	paused bool
}

// startEngine serves an engine on a socket and returns its address. All
// containers are gone when t ends; those that nobody removed are an error.
func startEngine(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kelpie-engine-") // short: a socket's path may have some 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{program: program, dir: dir, boxes: map[string]*box{}}
	socket := filepath.Join(dir, "docker.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: e.routes()}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		for id, b := range e.boxes {
			t.Errorf("container %s was not removed", id)
			b.kill()
		}
		_ = os.RemoveAll(dir)
	})
	return "unix://" + socket
}

func (e *engine) routes() http.Handler {
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.47") })
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) { say(w, map[string]any{"ServerVersion": "27.0"}) })
	mux.HandleFunc("GET /images/{name...}", func(w http.ResponseWriter, _ *http.Request) { say(w, map[string]any{"Id": "image"}) })
	mux.HandleFunc("GET /networks", func(w http.ResponseWriter, _ *http.Request) {
		say(w, []any{map[string]any{"Name": "bridge", "Id": "bridge"}})
	})
	mux.HandleFunc("POST /containers/create", func(w http.ResponseWriter, r *http.Request) {
		id, err := e.create(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusCreated)
		say(w, map[string]any{"Id": id})
	})
	mux.HandleFunc("GET /containers/{id}/json", e.on(func(b *box, w http.ResponseWriter) error { say(w, b.inspect()); return nil }))
	mux.HandleFunc("POST /containers/{id}/start", e.on(func(b *box, _ http.ResponseWriter) error { return b.start(e.program) }))
	mux.HandleFunc("POST /containers/{id}/pause", e.on(func(b *box, _ http.ResponseWriter) error { return b.freeze(true) }))
	mux.HandleFunc("POST /containers/{id}/unpause", e.on(func(b *box, _ http.ResponseWriter) error { return b.freeze(false) }))
	mux.HandleFunc("POST /containers/{id}/kill", e.on(func(b *box, _ http.ResponseWriter) error {
		if !b.runs() || b.paused {
			return errors.New("it is not running, or paused")
		}
		b.kill()
		return nil
	}))
	mux.HandleFunc("DELETE /containers/{id}", func(w http.ResponseWriter, r *http.Request) {
		e.on(func(b *box, _ http.ResponseWriter) error { b.kill(); return os.RemoveAll(b.dir) })(w, r)
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.boxes, r.PathValue("id"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/v1."); ok { // /v1.47/info
			_, after, _ := strings.Cut(rest, "/")
			r.URL.Path = "/" + after
		}
		mux.ServeHTTP(w, r)
	})
}

// on runs f on the container that the path names.
func (e *engine) on(f func(*box, http.ResponseWriter) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		b := e.boxes[r.PathValue("id")]
		if b == nil {
			http.Error(w, `{"message":"no such container"}`, http.StatusNotFound)
			return
		}
		if err := f(b, w); err != nil {
			http.Error(w, fmt.Sprintf(`{"message":%q}`, err), http.StatusConflict)
		}
	}
}

func (e *engine) create(r *http.Request) (string, error) {
	var asked struct {
		Image      string
		Cmd        []string
		HostConfig struct {
			AutoRemove   bool
			PortBindings map[string][]struct{ HostIp, HostPort string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return "", err
	}
	bound := asked.HostConfig.PortBindings["6379/tcp"]
	if asked.Image != "redis:7-alpine" || len(asked.Cmd) == 0 || asked.Cmd[0] != "redis-server" || asked.HostConfig.AutoRemove ||
		len(bound) != 1 || bound[0].HostIp != "127.0.0.1" || bound[0].HostPort == "" {
		return "", fmt.Errorf("not what redistest should ask for: %+v", asked)
	}
	dir, err := os.MkdirTemp(e.dir, "box")
	if err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.created++
	id := fmt.Sprintf("%064x", e.created)
	e.boxes[id] = &box{dir: dir, args: asked.Cmd[1:], port: bound[0].HostPort}
	return id, nil
}

func (b *box) start(program string) error {
	args := append([]string{"--port", b.port, "--bind", "127.0.0.1", "--dir", b.dir}, b.args...)
	b.cmd, b.ended = exec.Command(program, args...), make(chan struct{})
	if err := b.cmd.Start(); err != nil {
		return err
	}
	go func() { defer close(b.ended); _ = b.cmd.Wait() }()
	return nil
}

func (b *box) runs() bool {
	if b.cmd == nil {
		return false
	}
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

func (b *box) kill() {
	if b.runs() {
		_ = b.cmd.Process.Kill()
		<-b.ended
	}
	b.paused = false
}

func (b *box) freeze(on bool) error {
	if !b.runs() || b.paused == on {
		return errors.New("not in a state for that")
	}
	b.paused = on
	if on {
		return b.cmd.Process.Signal(syscall.SIGSTOP)
	}
	return b.cmd.Process.Signal(syscall.SIGCONT)
}

func (b *box) inspect() any {
	return map[string]any{
		"Id":    "box",
		"State": map[string]any{"Running": b.runs(), "Paused": b.paused},
		"NetworkSettings": map[string]any{"Ports": map[string]any{
			"6379/tcp": []any{map[string]any{"HostIp": "127.0.0.1", "HostPort": b.port}},
		}},
	}
}

// TestTheContainerBackend runs this package's tests of a server once more, in
// a process that is told to use containers.
func TestTheContainerBackend(t *testing.T) {
	t.Parallel()
	if os.Getenv("KELPIE_TEST_BACKEND") == "container" {
		return // it is what all tests use here
	}
	p, err := chooseProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v",
		"-test.run=^Test(AKilledServer|ARunningServer|APausedServer|OptionsReach|AServerListens|TheVersionIs|TheShared|BothRuns)")
	cmd.Env = append(os.Environ(), "KELPIE_TEST_BACKEND=container", "KELPIE_TEST_IMAGE=", "DOCKER_HOST="+startEngine(t, p.program),
		"TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1") // the tests themselves may run in a container
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "\n--- PASS"); n < 8 {
		t.Errorf("%d tests ran, want 8 or more\n%s", n, out)
	}
}
