package traffic

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/work"
)

func TestTheSeedDecidesThePlan(t *testing.T) {
	t.Parallel()
	first, same, other := Plan(7, usual(3000, time.Minute)), Plan(7, usual(3000, time.Minute)), Plan(8, usual(3000, time.Minute))
	if !reflect.DeepEqual(first, same) {
		t.Error("the same seed gives another plan")
	}
	if reflect.DeepEqual(first, other) {
		t.Error("another seed gives the same plan")
	}
}

func TestEachShareIsThere(t *testing.T) {
	t.Parallel()
	const jobs = 20_000
	s := usual(jobs, time.Minute)
	have := map[string]int{}
	for _, it := range Plan(1, s) {
		if it.Verb != Enqueue {
			have[it.Verb]++
			continue
		}
		have[it.By]++
		have["priority "+string(rune('0'+it.Priority))]++
		have[it.Queue]++
		if len(it.Task.Acts) > 0 {
			have[string(it.Task.Acts[0])]++
		}
		for what, is := range map[string]bool{
			"delayed": it.Delay > 0, "chosen": it.ID != "", "batched": it.Group > 0 && it.By == ByLibrary, "impatient": it.GiveUp > 0,
			"kept": it.Retention > 0, "padded": it.Task.Pad != "",
		} {
			if is {
				have[what]++
			}
		}
	}
	for what, want := range map[string]int{
		"delayed": 150 + 20, "chosen": 100, "batched": 200, "impatient": 20, ByCLI: 30, Reschedule: 20, Revive: 20,
		"fail": 60 + 20 + 20, "panic": 20, "snooze": 20, "discard": 20, "deaf": 20, "child": 20, "overrun": 20,
		"kept": kept, "padded": padded, "mail": 500, "orders": 500, "priority 0": 100, "priority 9": 100,
	} {
		want := float64(want) * jobs / 1000
		if got := float64(have[what]); math.Abs(got-want) > 5*math.Sqrt(want)+want/20 {
			t.Errorf("%s: %v jobs, want about %v", what, got, want)
		}
	}
}

func TestWithoutSharesAllJobsArePlain(t *testing.T) {
	t.Parallel()
	plan := Plan(1, history.Settings{Jobs: 500, Duration: time.Second})
	for i, it := range plan {
		if it.Verb != Enqueue || it.By != ByLibrary || it.Delay+it.Due != 0 || it.ID != "" || it.Group != 0 || len(it.Task.Acts) != 0 ||
			it.Task.Run != 0 || it.Queue != "default" || it.Producer != 1 || it.N != i+1 {
			t.Fatalf("item %+v", it)
		}
	}
	if len(plan) != 500 {
		t.Errorf("%d items, want 500", len(plan))
	}
}

func TestJobsThatAreDueTogetherAreEnqueuedAtOnce(t *testing.T) {
	t.Parallel()
	s := usual(5000, time.Minute)
	s.Work.Together, s.Work.Delayed, s.Work.Moved = true, 800, 0
	n, groups := 0, map[int]int{}
	for _, it := range Plan(1, s) {
		if it.Delay != 0 {
			t.Fatalf("item %+v is delayed by itself", it)
		}
		if it.Due != 0 {
			n++
			groups[it.Group]++
			if it.At != 0 || it.Due != 5*time.Second || it.By != ByLibrary {
				t.Fatalf("item %+v", it)
			}
		}
	}
	if n < 3800 || n > 4200 || len(groups) > 2*(1+2100/togetherGroup) {
		t.Errorf("%d jobs in %d calls", n, len(groups))
	}
}

// TestAPlanHoldsTogether is about any settings.
func TestAPlanHoldsTogether(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.IntRange(0, 1000)
		s := history.Settings{
			Jobs: rapid.IntRange(0, 300).Draw(t, "jobs"), Duration: time.Duration(rapid.IntRange(0, 1e9).Draw(t, "duration")),
			Queues: rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}}).Draw(t, "queues"),
			Work: history.Work{
				Producers: rapid.IntRange(0, 4).Draw(t, "producers"), Later: time.Duration(rapid.IntRange(0, 1e9).Draw(t, "later")),
				Shortest: time.Duration(rapid.IntRange(0, 1e9).Draw(t, "shortest")), Longest: time.Duration(rapid.IntRange(0, 1e9).Draw(t, "longest")),
				Delayed: share.Draw(t, "delayed"), Together: rapid.Bool().Draw(t, "together"), Failing: share.Draw(t, "failing"),
				Doomed: share.Draw(t, "doomed"), Deaf: share.Draw(t, "deaf"), Overrun: share.Draw(t, "overrun"), Revived: share.Draw(t, "revived"),
				Chosen: share.Draw(t, "chosen"), CLI: share.Draw(t, "cli"), Batched: share.Draw(t, "batched"),
				Impatient: share.Draw(t, "impatient"), Moved: share.Draw(t, "moved"),
			},
		}
		plan := Plan(rapid.Uint64().Draw(t, "seed"), s)
		jobs := 0
		for i, it := range plan {
			if it.N != i+1 || i > 0 && it.At < plan[i-1].At || it.Producer < 1 || it.Producer > max(1, s.Work.Producers) {
				t.Fatalf("item %d: %+v", i, it)
			}
			if it.Verb == Enqueue {
				jobs++
				checkJob(t, s, it)
			} else if of := plan[max(it.Of, 1)-1]; it.Of < 1 || it.Of >= it.N || of.Verb != Enqueue || of.Producer != it.Producer || of.Queue != it.Queue {
				t.Fatalf("%+v follows %+v", it, of)
			}
		}
		if jobs != s.Jobs {
			t.Fatalf("%d jobs, want %d", jobs, s.Jobs)
		}
		checkGroups(t, plan)
	})
}

func checkJob(t *rapid.T, s history.Settings, it Item) {
	switch {
	case it.At < 0 || it.At > s.Duration, it.Delay > 0 && it.Due > 0, it.Delay > s.Work.Later, it.Max < 1,
		it.Task.Run < s.Work.Shortest, it.Task.Run > max(s.Work.Shortest, s.Work.Longest):
		t.Fatalf("%+v is outside of %+v", it, s)
	case len(it.Task.Acts) > 0 && it.Task.Acts[0] == work.Overrun && it.Timeout <= it.Task.Run:
		t.Fatalf("%+v has no time for its second attempt", it)
	}
}

// checkGroups looks whether a call is one producer's, of one way and time.
func checkGroups(t *rapid.T, plan []Item) {
	first, ids := map[int]Item{}, map[string]bool{}
	for _, it := range plan {
		if it.ID != "" && ids[it.ID] {
			t.Fatalf("id %s is chosen twice", it.ID)
		}
		ids[it.ID] = true
		if it.Group == 0 {
			continue
		}
		f, known := first[it.Group]
		if first[it.Group] = it; known && (f.Producer != it.Producer || f.At != it.At || f.By != it.By || it.Verb != Enqueue) {
			t.Fatalf("%+v and %+v go in one call", f, it)
		}
	}
}
