package scenario

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/traffic"
)

func plan(t *testing.T, s Scenario, o Options) history.Run {
	t.Helper()
	run, _, err := s.Plan(o)
	if err != nil {
		t.Fatalf("%s, seed %d: %v", s.Name, o.Seed, err)
	}
	return run
}

func TestTheSameSeedGivesTheSamePlan(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		for _, seed := range []uint64{0, 1, 1 << 63} {
			a, _ := json.Marshal(plan(t, s, Options{Seed: seed}))
			b, _ := json.Marshal(plan(t, s, Options{Seed: seed}))
			if string(a) != string(b) {
				t.Errorf("%s, seed %d: two plans differ:\n%s\n%s", s.Name, seed, a, b)
			}
			run := plan(t, s, Options{Seed: seed})
			first, again := traffic.Plan(seed, run.Settings), traffic.Plan(seed, run.Settings)
			x, _ := json.Marshal(first)
			y, _ := json.Marshal(again)
			if string(x) != string(y) {
				t.Errorf("%s, seed %d: the work of two plans differs", s.Name, seed)
			}
		}
	}
}

func TestAnotherSeedGivesAnotherPlan(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		a, b := plan(t, s, Options{Seed: 1}), plan(t, s, Options{Seed: 2})
		x, _ := json.Marshal(a.Plan)
		y, _ := json.Marshal(b.Plan)
		if len(a.Plan) > 0 && string(x) == string(y) {
			t.Errorf("%s: seeds 1 and 2 give the same faults", s.Name)
		}
	}
}

func TestEveryPlanIsSound(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		for seed := range uint64(50) {
			run := plan(t, s, Options{Seed: seed})
			for i, f := range run.Plan {
				if err := fault.Check(f); err != nil {
					t.Errorf("%s, seed %d: %v", s.Name, seed, err)
				}
				if f.N != i+1 || f.At < 0 || f.For < 0 || i > 0 && f.At < run.Plan[i-1].At {
					t.Errorf("%s, seed %d: fault %+v stands at place %d", s.Name, seed, f, i)
				}
				if f.At > run.Settings.Duration {
					t.Errorf("%s, seed %d: fault %d begins at %v, the run is over at %v", s.Name, seed, f.N, f.At, run.Settings.Duration)
				}
			}
			for name := range run.Needs {
				if !slices.Contains(check.Coverages(), name) {
					t.Errorf("%s needs %q, which the judge does not count", s.Name, name)
				}
			}
			if run.Settings.Duration <= 0 || run.Settings.Jobs <= 0 || run.Settings.Settle <= 0 {
				t.Errorf("%s, seed %d: settings %+v", s.Name, seed, run.Settings)
			}
		}
	}
}

func TestEveryScenarioHasANameAndASentence(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range All() {
		if !regexp.MustCompile(`^[a-z][a-z-]*[a-z]$`).MatchString(s.Name) || seen[s.Name] {
			t.Errorf("name %q: bad, or there twice", s.Name)
		}
		seen[s.Name] = true
		if len(s.Says) < 30 || strings.HasSuffix(s.Says, ".") {
			t.Errorf("%s says %q", s.Name, s.Says)
		}
		found, ok := Find(s.Name)
		if !ok || found.Says != s.Says {
			t.Errorf("%s is not found", s.Name)
		}
	}
	if _, ok := Find("nosuch"); ok {
		t.Error("a scenario nosuch is found")
	}
}

func TestKillsGoesOnUntilFifteenHaveHit(t *testing.T) {
	t.Parallel()
	s, _ := Find("kills")
	for seed := range uint64(20) {
		run := plan(t, s, Options{Seed: seed})
		if len(run.Plan) != 16 || run.Needs[check.KillsMidJob] != 15 {
			t.Errorf("seed %d: %d kills, %d needed", seed, len(run.Plan), run.Needs[check.KillsMidJob])
		}
		last := run.Plan[0].At
		for _, f := range run.Plan[1:] {
			if gap := f.At - last; gap < 2*time.Second || gap > 5*time.Second {
				t.Errorf("seed %d: kill %d comes %v after the one before", seed, f.N, gap)
			}
			last = f.At
		}
	}
	run := plan(t, s, Options{Duration: 20 * time.Second, Jobs: 2000, Nodes: 7, Workers: 3})
	if n := len(run.Plan); n < 3 || n > 10 || run.Needs[check.KillsMidJob] != n-1 {
		t.Errorf("in 20 s: %d kills, %d needed", n, run.Needs[check.KillsMidJob])
	}
	if got := run.Settings; got.Duration != 20*time.Second || got.Jobs != 2000 || got.Nodes != 7 || got.Workers != 3 {
		t.Errorf("settings %+v are not those of the options", got)
	}
}

func TestAForeignRedisIsNeverStruck(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		run, left, err := s.Plan(Options{Seed: 3, Foreign: true})
		for _, f := range run.Plan {
			k, ok := fault.Find(f.Kind)
			if !ok || slices.Contains(k.Needs, fault.OwnRedis) || slices.Contains(k.Needs, fault.Replicas) {
				t.Errorf("%s: plans %s on somebody's own Redis", s.Name, f.Kind)
			}
		}
		if err == nil && run.Plan == nil && plan(t, s, Options{Seed: 3}).Plan != nil {
			t.Errorf("%s: nothing is left to strike, and no error", s.Name)
		}
		if strings.HasPrefix(s.Name, "redis-") && err == nil {
			t.Errorf("%s: runs on a Redis that it may not strike; left out: %v", s.Name, left)
		}
	}
}

// The kinds that strike Redis are those that say so themselves.
func TestStrikesOnRedisAreKnown(t *testing.T) {
	t.Parallel()
	for _, k := range fault.Kinds() {
		own := slices.Contains(k.Needs, fault.OwnRedis) || slices.Contains(k.Needs, fault.Replicas)
		if own != strikesRedis[k.Name] {
			t.Errorf("%s: strikes Redis: %v here, %v in package fault", k.Name, strikesRedis[k.Name], own)
		}
	}
}
