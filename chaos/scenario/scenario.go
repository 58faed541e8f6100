package scenario

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// Scenario is one named kind of run.
type Scenario struct {
	Name  string
	Says  string   // one sentence: what is done, and what must hold
	Cases []string // ids of docs/cases.md that it stands for

	Settings history.Settings // the defaults
	Server   Server
	Skew     map[int]time.Duration // by node, from 0: how far its wall clock is off
	// StateDirs gives each node a state directory, so that a new process knows its
	// predecessor.
	StateDirs bool
	// FencesAhead lets Redis's clock have been ahead once: fences and epochs are
	// counted up from there, and not taken from the clock.
	FencesAhead bool
	Bars        []history.Bar
	Loss        history.Loss

	plan func(*planner)
}

// Server is the Redis that a scenario needs.
type Server struct {
	Fsync    string // always or everysec
	Sentinel bool   // a master, replicas and three sentinels
}

// Options change a scenario's own settings. The zero value changes nothing.
type Options struct {
	Seed     uint64
	Nodes    int
	Workers  int
	Jobs     int
	Duration time.Duration
	// Foreign says that the Redis is somebody's own: faults on Redis itself are
	// left out.
	Foreign bool
}

// All returns the scenarios in the order of a list for people.
func All() []Scenario {
	return slices.Concat([]Scenario{mixed}, ofNodes, ofNetwork, ofRedis, ofReturn, ofLoad, ofJudge)
}

// Find returns the scenario of that name.
func Find(name string) (Scenario, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, false
	}
	return all[i], true
}

// Plan draws the run: settings, faults in the order of their time, needs, bars.
// left names the kinds of fault that were left out because the Redis is foreign.
// The error says why there is nothing to run.
func (s Scenario) Plan(o Options) (run history.Run, left []string, err error) {
	if o.Foreign && s.Server.Sentinel {
		return run, nil, fmt.Errorf("scenario %s needs Redis servers of its own", s.Name)
	}
	settings := s.with(o)
	p := &planner{
		rand: rand.New(rand.NewPCG(o.Seed, number(s.Name))), settings: settings, foreign: o.Foreign,
		end: settings.Duration, needs: map[string]int{"jobs": max(1, settings.Jobs/2)},
	}
	s.plan(p)
	if len(p.faults) == 0 && len(p.left) > 0 {
		return run, p.left, fmt.Errorf("scenario %s strikes Redis itself (%s): it needs a server of its own", s.Name, strings.Join(p.left, ", "))
	}
	return history.Run{
		Seed: o.Seed, Scenario: s.Name, Cases: s.Cases, Settings: p.finish(),
		Plan: p.faults, Needs: p.needs, Bars: s.Bars, Loss: s.Loss,
	}, p.left, nil
}

func (s Scenario) with(o Options) history.Settings {
	settings := s.Settings
	settings.Queues = slices.Clone(settings.Queues)
	for _, pair := range []struct {
		own   *int
		given int
	}{{&settings.Nodes, o.Nodes}, {&settings.Workers, o.Workers}, {&settings.Jobs, o.Jobs}} {
		if pair.given > 0 {
			*pair.own = pair.given
		}
	}
	if o.Duration > 0 {
		settings.Duration = o.Duration
	}
	return settings
}

// number makes a seed of a name, so that scenarios with one seed differ.
func number(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum64()
}
