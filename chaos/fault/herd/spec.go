package herd

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/process"
)

// Spec says which nodes to run, and how.
type Spec struct {
	Kennel *process.Kennel // owns the processes; stays the caller's to close
	Kelpie string          // path of the program under test
	Dir    string          // of the run: --chaos of each node, and the place of links.json
	Prefix string          // of the job space
	// RedisURL is the address that a node gets, by its number from 0. It is asked
	// at each start of a process.
	RedisURL func(node int) string

	// Settings: Nodes and Workers are needed; what else is zero is left to the
	// defaults of kelpie node.
	Settings history.Settings
	Names    []string // default n1, n2, ...
	Seed     uint64   // of what the links draw

	Netns     bool   // a network namespace for each node
	StateDirs bool   // a state directory for each node, in Dir/state
	Log       string // log level of the nodes; default info

	Skew   map[int]time.Duration // how far a node's wall clock is off, by its number from 0
	Skewed string                // the program for those, made by Skewed

	// Lost, if set, is called on a goroutine of the herd when a process ends that
	// was neither killed nor asked to end, or that panicked after it was asked.
	Lost func(name string, err error)
}

// mostNodes is what the addresses of one network suffice for.
const mostNodes = 250

// check returns all faults at once.
func (s *Spec) check() error {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if s.Kennel == nil {
		fault("herd: needs a kennel")
	}
	if s.Kelpie == "" || s.Dir == "" || s.RedisURL == nil {
		fault("herd: needs a program, a folder and the address of Redis")
	}
	if n := s.Settings.Nodes; n < 1 || n > mostNodes {
		fault("herd: %d nodes: must be 1 to %d", n, mostNodes)
	}
	if len(s.Names) > 0 && len(s.Names) != s.Settings.Nodes {
		fault("herd: %d names for %d nodes", len(s.Names), s.Settings.Nodes)
	}
	if len(s.Skew) > 0 && s.Skewed == "" {
		fault("herd: clocks that are off need the build for them")
	}
	return errors.Join(faults...)
}

// name of the node with that number.
func (s *Spec) name(n int) string {
	if len(s.Names) > 0 {
		return s.Names[n]
	}
	return "n" + strconv.Itoa(n+1)
}
