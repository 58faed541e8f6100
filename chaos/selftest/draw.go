package main

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/kelpiehq/kelpie/chaos/plant"
	"github.com/kelpiehq/kelpie/chaos/scenario"
)

// draw chooses the bugs: all that fit, or as many as asked for. They stand in one
// order for ever, and the seed says where in it to begin, so that seeds that
// follow each other take the next ones, until all have had their turn.
func draw(o options) []plant.Bug {
	all := slices.DeleteFunc(plant.Bugs(), func(b plant.Bug) bool { return !strings.Contains(b.Name, o.only) })
	if o.some == 0 || o.some >= len(all) {
		return all
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := uint64(len(all))
	from := int(o.seed % n * uint64(o.some) % n)
	return slices.Concat(all, all)[from : from+o.some]
}

// plan makes a trial of each bug, after one of a sound build for each scenario.
func plan(bugs []plant.Bug, seed uint64) []*trial {
	var trials []*trial
	seen := map[string]bool{}
	for _, b := range bugs {
		if !seen[b.Scenario] {
			seen[b.Scenario] = true
			trials = append(trials, &trial{scenario: b.Scenario, seed: seed, skew: skewed(b.Scenario)})
		}
		trials = append(trials, &trial{bug: b, scenario: b.Scenario, seed: seed, skew: skewed(b.Scenario)})
	}
	return trials
}

// skewed says that a scenario needs builds whose clock can be off.
func skewed(name string) bool {
	s, _ := scenario.Find(name)
	return len(s.Skew) > 0
}
