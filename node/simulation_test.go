package node

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"
)

// The protocol in one process and in virtual time: nodes as they are, over
// miniredis, and between them a way to Redis on which a seed decides what becomes
// of each call (simulation_fate_test.go), who crashes, stops or stands still, and
// when Redis is away. What came of it is judged by the log that the scripts
// write. A seed repeats its plan and the fate of each actor's n-th call of a kind.
// The product's own jitter and the order within an instant stay free, so about
// half of the histories repeat move for move; a rare failure needs -count 20.
var (
	oneSeed   = flag.Uint64("simulation.seed", 0, "simulate this seed alone, and print its trace")
	manySeeds = flag.Int("simulation.seeds", 0, "simulate so many seeds; default KELPIE_TEST_SEEDS, or a few hundred")
)

// enough is how many seeds must have met all that mustMeet lists.
const enough = 50

func seeds() (int, error) {
	if *manySeeds > 0 {
		return *manySeeds, nil
	}
	if text := os.Getenv("KELPIE_TEST_SEEDS"); text != "" {
		return strconv.Atoi(text)
	}
	return defaultSeeds, nil
}

// tally is what many seeds came to.
type tally struct {
	mu           sync.Mutex
	calls, lived int
	met          map[string]int
}

func (s *tally) add(out report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.lived = s.calls+out.calls, s.lived+int(out.lived)
	for what, n := range out.met {
		s.met[what] += n
	}
}

func TestSimulation(t *testing.T) {
	if *oneSeed != 0 {
		out := simulate(t, *oneSeed, plant{})
		t.Logf("%d calls in %v\n%s", out.calls, out.lived, out.trace)
		for _, wrong := range out.wrong {
			t.Error(wrong)
		}
		return
	}
	n, err := seeds()
	if err != nil || n < 1 {
		t.Fatalf("KELPIE_TEST_SEEDS: must be a number, at least 1: %v", err)
	}
	sum, began := tally{met: map[string]int{}}, time.Now()
	if bad := search(t, n, plant{}, func(out report) bool { sum.add(out); return len(out.wrong) > 0 }); bad != nil {
		t.Fatalf("seed %d: %q\nagain: go test ./node -run 'Simulation$' -simulation.seed %d -count 20\n%s", bad.seed, bad.wrong, bad.seed, bad.trace)
	}
	took := time.Since(began)
	t.Logf("%d seeds in %v, %.0f a minute; each %d calls and %v of life; they met %v", n, took.Round(time.Millisecond),
		float64(n)/took.Minutes(), sum.calls/n, time.Duration(sum.lived/n).Round(time.Millisecond), sum.met)
	for _, what := range mustMeet {
		if n >= enough && sum.met[what] == 0 {
			t.Errorf("no seed has met %q", what)
		}
	}
}

// TestASeedRepeatsItsPlan: what is drawn depends on the seed and the name of a
// stream alone.
func TestASeedRepeatsItsPlan(t *testing.T) {
	t.Parallel()
	if a, b := fmt.Sprint(*newPlan(7, false)), fmt.Sprint(*newPlan(7, false)); a != b {
		t.Errorf("the same seed planned\n%s\nand\n%s", a, b)
	}
	if a, b := fmt.Sprint(*newPlan(7, false)), fmt.Sprint(*newPlan(8, false)); a == b {
		t.Errorf("two seeds planned the same: %s", a)
	}
	one, other := stream(7, "n1.1", "beat"), stream(7, "n1.1", "beat")
	for range 10 {
		if a, b := newPlan(7, false).weather.draw(one, 1), newPlan(7, false).weather.draw(other, 1); a != b {
			t.Errorf("fates %v and %v", a, b)
		}
	}
}

// finding is a seed that search looked for.
type finding struct {
	seed uint64
	report
}

// search lives the seeds from 1 to most, as many at a time as there are
// processors, until one is what it looks for; it returns the lowest such one.
func search(t *testing.T, most int, bad plant, sought func(report) bool) (found *finding) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // Lua leaves much behind
	var mu sync.Mutex
	next := uint64(0)
	take := func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		if next++; found != nil || next > uint64(most) {
			return 0
		}
		return next
	}
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for seed := take(); seed != 0; seed = take() {
					if out := simulate(t, seed, bad); sought(out) {
						mu.Lock()
						if found == nil || seed < found.seed {
							found = &finding{seed, out}
						}
						mu.Unlock()
					}
				}
			})
		}
	})
	return found
}
