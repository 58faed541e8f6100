package herd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/process"
)

// Node is one node of the herd: a name, and the process that has it now. Its
// methods are safe for concurrent use; signals to one that does not run do
// nothing.
type Node struct {
	herd   *Herd
	number int
	name   string

	mu   sync.Mutex
	last *life // nil: none yet
}

// life is one process of a node. The node's lock holds for what was done to it.
type life struct {
	*process.Child
	doom  bool // it was killed
	asked bool // it was asked to end
}

// Name is the node's name, which it keeps over restarts.
func (n *Node) Name() string { return n.name }

// Number is the node's number, from 0.
func (n *Node) Number() int { return n.number }

// Start starts a new process. It does not wait until the node has joined. One
// that runs is an error.
func (n *Node) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.runs() {
		return fmt.Errorf("%s runs already, as process %d", n.name, n.last.PID())
	}
	child, err := n.herd.spec.Kennel.Start(n.command())
	if err != nil {
		return err
	}
	l := &life{Child: child}
	n.last = l
	n.herd.watches.Go(func() { n.watch(l) })
	return nil
}

// command is what the node runs.
func (n *Node) command() process.Command {
	s := &n.herd.spec
	c := process.Command{Name: n.name, Program: s.Kelpie}
	if skew, ok := s.Skew[n.number]; ok {
		c.Program, c.Env = s.Skewed, []string{skewVariable + "=" + skew.String()}
	}
	c.Args = []string{
		"node", "--redis", s.RedisURL(n.number), "--name", n.name, "--gossip", n.herd.network.gossip(n.number),
		"--chaos", n.herd.dir, "--workers", strconv.Itoa(max(1, s.Settings.Workers)),
	}
	option := func(flag, value string) {
		if value != "" {
			c.Args = append(c.Args, flag, value)
		}
	}
	length := func(flag string, d time.Duration) {
		if d > 0 {
			option(flag, d.String())
		}
	}
	option("--prefix", s.Prefix)
	option("--queues", strings.Join(s.Settings.Queues, ","))
	option("--log-level", s.Log)
	length("--heartbeat", s.Settings.Heartbeat)
	length("--silence", s.Settings.Silence)
	length("--lease", s.Settings.Lease)
	length("--drain-timeout", s.Settings.Drain)
	if s.StateDirs {
		option("--state-dir", filepath.Join(n.herd.dir, "state", n.name))
	}
	c.Program, c.Args = n.herd.network.enter(n.number, c.Program, c.Args)
	return c
}

// exitPanic is the exit status of a Go program that panicked.
const exitPanic = 2

// watch waits for the end of a process and tells of one that nobody wanted.
func (n *Node) watch(l *life) {
	err := l.Err()
	var exit *exec.ExitError
	broken := errors.As(err, &exit) && exit.ExitCode() == exitPanic
	n.mu.Lock()
	meant := l.doom || l.asked && !broken
	n.mu.Unlock()
	if meant || n.herd.spec.Lost == nil {
		return
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	n.herd.spec.Lost(n.name, fmt.Errorf("%s ended by itself: %w: %s", n.name, err, l.LastWords(3)))
}

// runs needs the lock.
func (n *Node) runs() bool {
	if n.last == nil {
		return false
	}
	select {
	case <-n.last.Ended():
		return false
	default:
		return true
	}
}

// Running tells if its process is there; one that is stopped is.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runs()
}

// PID is the process id of the last one started; 0 before the first.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		return 0
	}
	return n.last.PID()
}

// nothing is the end of a process that never was.
var nothing = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Ended is closed once the last one started is gone, and before the first.
func (n *Node) Ended() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		return nothing
	}
	return n.last.Ended()
}

// Kill ends the process as kill -9 does, also one that is stopped, and waits
// until it is gone.
func (n *Node) Kill() {
	if child := n.about(func(l *life) { l.doom = true }); child != nil {
		child.Kill()
	}
}

// Term asks the process to end; it does not wait. One that is stopped hears it
// after Cont.
func (n *Node) Term() {
	if child := n.about(func(l *life) { l.asked = true }); child != nil {
		child.Term()
	}
}

// Stop freezes the process.
func (n *Node) Stop() {
	if child := n.about(func(*life) {}); child != nil {
		child.Stop()
	}
}

// Cont lets it go on.
func (n *Node) Cont() {
	if child := n.about(func(*life) {}); child != nil {
		child.Cont()
	}
}

// about returns the process if there is one, and notes what is about to be done
// to it.
func (n *Node) about(note func(*life)) *process.Child {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.runs() {
		return nil
	}
	note(n.last)
	return n.last.Child
}

// Unplug cuts the node from everything, as a cable that is pulled: its own
// connections as well hear nothing any more. It needs Spec.Netns.
func (n *Node) Unplug() error { return n.herd.network.plug(n.number, false) }

// Plug puts the cable back.
func (n *Node) Plug() error { return n.herd.network.plug(n.number, true) }
