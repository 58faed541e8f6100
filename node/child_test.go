package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// childEnv carries the order to a copy of the test binary that is to be a node.
const childEnv = "KELPIE_TEST_NODE"

// order is what a child runs: a node with a handler for "work".
type order struct {
	Redis, Prefix, Name, Ledger string
	Queues                      []Queue
	Workers                     int
	StateDir, Gossip, HTTP      string
	Silence, Lease, Drain       time.Duration
	Blocked                     bool // gossip, from the start; SIGUSR1 blocks it later
	NoHandler                   bool
}

// runChild is the main function of a child; it returns the exit code. The child
// ends with the pipe on its standard input, so it outlives no test.
func runChild(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var wall wall
	wall.up.Store(o.Blocked)
	block := make(chan os.Signal, 1)
	signal.Notify(block, syscall.SIGUSR1)
	go func() {
		for range block {
			wall.up.Store(true)
		}
	}()
	n, err := New(Config{
		Redis: o.Redis, Prefix: o.Prefix, Name: o.Name, Queues: o.Queues, Workers: o.Workers, StateDir: o.StateDir,
		Gossip: or(o.Gossip, "127.0.0.1:0"), HTTP: o.HTTP, Silence: o.Silence, Lease: o.Lease, DrainTimeout: o.Drain,
		Log: zerolog.New(os.Stderr).With().Timestamp().Logger(), Abort: secondTerm(ctx), cluster: wall.around,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if !o.NoHandler {
		Handle(n, workKind, worker(o.Ledger, o.Name))
	}
	if err := n.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// secondTerm closes its channel at a SIGTERM after the first.
func secondTerm(first context.Context) <-chan struct{} {
	abort, terms := make(chan struct{}), make(chan os.Signal, 2)
	signal.Notify(terms, syscall.SIGTERM)
	go func() {
		<-first.Done()
		<-terms
		<-terms
		close(abort)
	}()
	return abort
}

// child is a node in a process of its own.
type child struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
	once  sync.Once
}

// spawn starts a node as a process. What o leaves out is as in config.
func (h *herd) spawn(o order) *child {
	h.t.Helper()
	o.Redis, o.Prefix, o.Ledger = or(o.Redis, h.url), h.prefix, h.ledger.path
	o.Workers, o.Drain = or(o.Workers, 10), or(o.Drain, 2*time.Second)
	text, err := json.Marshal(o)
	if err != nil {
		h.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	c := &child{t: h.t, name: o.Name, log: filepath.Join(filepath.Dir(h.ledger.path), o.Name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	c.cmd = exec.Command(self)
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an orphaned group that is stopped gets SIGHUP
	leash, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	go func() { // ends with the process, which the test's end kills
		defer close(c.ended)
		_ = c.cmd.Wait()
		_ = leash.Close()
	}()
	h.t.Cleanup(func() {
		c.kill()
		if h.t.Failed() || os.Getenv("KELPIE_TEST_LOG") != "" {
			b, _ := os.ReadFile(c.log)
			h.t.Logf("log of %s:\n%s", c.name, b[max(len(b)-6000, 0):])
		}
	})
	return c
}

// kill is kill -9; it returns when the process is gone.
func (c *child) kill() {
	c.once.Do(func() { _ = c.cmd.Process.Kill() })
	<-c.ended
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatalf("signal %v to %s: %v", s, c.name, err)
	}
}

// wait returns the exit code of a child that ends by itself.
func (c *child) wait(most time.Duration) int {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(most):
		c.t.Fatalf("%s does not end", c.name)
	}
	return c.cmd.ProcessState.ExitCode()
}

// goexit is apart, so that vet sees no dead code behind it.
func goexit() { runtime.Goexit() }
