package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/history"
)

func TestAKillTellsWhatTheSessionHeldAfterIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, w := newFarm(2)
		f.holds["n1-1"] = []string{"mail/b", "orders/a", "mail/b", "other/x"}
		before := history.Now()
		if err := fault.Strike(t.Context(), w, history.Fault{N: 3, Kind: "kill", Aim: "sweeper", For: time.Second}); err != nil {
			t.Fatal(err)
		}
		got := f.of(history.Hit)[0]
		if got.T < before || got.T > history.Now() {
			t.Errorf("T is %d, not within the call", got.T)
		}
		got.T = 0
		want := history.Strike{
			Phase: "hit", N: 3, Kind: "kill", Aim: "sweeper", Target: "n1", Session: "n1-1", Sweeper: true, PID: 1,
			Signal: "KILL", Held: []string{"mail/b", "orders/a"},
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("it recorded %+v\nwant        %+v", got, want)
		}
	})
}

// A storm hits processes that have no session yet, and those that just got one.
func TestAStormNamesTheSessionOfEachProcess(t *testing.T) {
	t.Parallel()
	sessions := map[string]bool{}
	for draw := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			f, w := newFarm(2)
			if err := fault.Strike(t.Context(), w, history.Fault{Kind: "storm", Aim: "sweeper", Draw: draw}); err != nil {
				t.Fatal(err)
			}
			hits := f.of(history.Hit)
			if len(hits) != 5 {
				t.Fatalf("it hit %d times, want 5 by default", len(hits))
			}
			for i, s := range hits {
				if own := fmt.Sprintf("n1-%d", s.PID); s.PID != i+1 || s.Session != own && s.Session != "" {
					t.Errorf("kill %d: process %d had session %q", i, s.PID, s.Session)
				}
				if i > 0 {
					sessions[map[bool]string{true: "none"}[s.Session == ""]] = true
				}
			}
		})
	}
	if len(sessions) != 2 {
		t.Errorf("of the later kills some should meet a session and some none: %v", sessions)
	}
}

func TestASetUpThatIsNotWellIsNotStruck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		harm func(f *farm)
		want string
	}{
		"Redis does not answer":        {func(f *farm) { f.down = errors.New("refused") }, "Redis does not answer: refused"},
		"a node has ended by itself":   {func(f *farm) { f.nodes["n2"].end("") }, "n2 does not run"},
		"a node runs without a beat":   {func(f *farm) { f.nodes["n2"].mute = true }, "n2 does not beat"},
		"a node is frozen by somebody": {func(f *farm) { f.nodes["n2"].stopped = true }, "n2 does not beat"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, w := newFarm(3)
				tt.harm(f)
				start := time.Now()
				if err := fault.Strike(t.Context(), w, history.Fault{Kind: "kill", Aim: "random"}); err != nil {
					t.Error(err)
				}
				if got := f.phases(); got != "health skip" {
					t.Errorf("it recorded %q", got)
				}
				if s := f.lines[0]; s.OK || s.Note != tt.want {
					t.Errorf("health: %+v, want %q", s, tt.want)
				}
				if took := time.Since(start); took < 4*time.Second || took > 10*time.Second {
					t.Errorf("it gave the set-up %v to become well", took)
				}
				if got := f.done(); len(got) > 0 {
					t.Errorf("it did %q", got)
				}
			})
		})
	}
}

func TestASetUpThatBecomesWellIsStruck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, w := newFarm(2)
		f.nodes["n2"].since = time.Now().Add(3 * time.Second)
		if err := fault.Strike(t.Context(), w, history.Fault{Kind: "kill", Aim: "sweeper"}); err != nil {
			t.Error(err)
		}
		if got := f.phases(); got != whole {
			t.Errorf("it recorded %q", got)
		}
	})
}

func TestWhatDoesNotComeBackIsNoHealth(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault history.Fault
		harm  func(f *farm)
		err   string // of Strike
		want  string // in the note of the health after it
	}{
		"a node that cannot be started": {
			history.Fault{N: 2, Kind: "kill", Aim: "sweeper"}, func(f *farm) { f.nodes["n1"].stuck = errors.New("no memory") },
			"fault 2, kill, could not be mended: no memory", "n1 does not run; no memory",
		},
		"a node that never beats again": {
			history.Fault{Kind: "kill", Aim: "sweeper", For: time.Second}, func(f *farm) {
				f.onLine = func(s history.Strike) {
					if s.Phase == history.Heal {
						f.mu.Lock()
						f.nodes["n1"].mute = true
						f.mu.Unlock()
					}
				}
			},
			"", "n1 does not beat",
		},
		"a node that does not end on SIGTERM": {
			history.Fault{Kind: "term", Aim: "sweeper"}, func(f *farm) { f.nodes["n1"].stays = true },
			"", "n1 had not ended 15s after SIGTERM, and was killed",
		},
		"a node of a rolling restart that does not come back": {
			history.Fault{Kind: "rolling"}, func(f *farm) {
				f.onLine = func(s history.Strike) {
					if s.Phase == history.Hit {
						f.mu.Lock()
						f.nodes["n1"].mute = true
						f.mu.Unlock()
					}
				}
			},
			"", "n1 was not ready 20s after its restart",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, w := newFarm(3)
				tt.harm(f)
				err := fault.Strike(t.Context(), w, tt.fault)
				if got := fmt.Sprint(err); tt.err == "" && err != nil || tt.err != "" && got != tt.err {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				health := f.of(history.Health)
				if len(health) != 2 || health[1].OK || !strings.Contains(health[1].Note, tt.want) {
					t.Errorf("health %+v, want a note with %q", health, tt.want)
				}
				if hits := f.of(history.Hit); len(hits) != 1 {
					t.Errorf("it went on: %+v", hits)
				}
			})
		})
	}
}

// Faults at the same moment: each thing is in one fault's hands, so that what is
// healed is whole, and each gets a target or a note.
func TestFaultsAtOnceDoNotHealAgainstEachOther(t *testing.T) {
	t.Parallel()
	kinds := []string{"kill", "stop", "term", "storm", "rolling", "cut-redis", "slow", "deaf", "cut", "cut-gossip", "gossip-loss",
		"redis-kill", "redis-pause", "redis-full", "script-flush", "term-kill"}
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			f, w := newFarm(3)
			var group sync.WaitGroup
			for i, kind := range slices.Concat(kinds, kinds) {
				group.Go(func() {
					k, _ := fault.Find(kind)
					aim := k.Aims[min(2, len(k.Aims)-1)] // a random node, where there are some
					plan := history.Fault{N: i + 1, Kind: kind, Aim: aim, For: time.Duration(i%5) * time.Second, Draw: seed*100 + uint64(i)}
					if err := fault.Strike(t.Context(), w, plan); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			f.whole(t)
			for _, s := range f.lines {
				if s.Phase == history.Health && !s.OK {
					t.Errorf("health: %+v", s)
				}
			}
			if hits := len(f.of(history.Hit)); hits < 20 {
				t.Errorf("only %d hits", hits)
			}
		})
	}
}

func TestTheSameNodeIsNotKilledTwiceAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, w := newFarm(1)
		var group sync.WaitGroup
		for n := range 2 {
			group.Go(func() {
				if err := fault.Strike(t.Context(), w, history.Fault{N: n + 1, Kind: "kill", Aim: "random", For: time.Minute}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		skips := f.of(history.Skip)
		if got := f.done(); !slices.Equal(got, []string{"kill n1", "start n1"}) || len(skips) != 1 {
			t.Errorf("they did %q and skipped %+v", got, skips)
		}
	})
}

// A node may be killed while its way to Redis is slow; then its missing beat is
// nobody's news.
func TestANodeMayBeKilledOverASlowWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, w := newFarm(1)
		var group sync.WaitGroup
		for _, plan := range []history.Fault{{N: 1, Kind: "slow", Aim: "all", For: time.Minute}, {N: 2, Kind: "kill", Aim: "sweeper", For: 5 * time.Second}} {
			group.Go(func() {
				if err := fault.Strike(t.Context(), w, plan); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if hits := f.of(history.Hit); len(hits) != 2 {
			t.Errorf("hits: %+v", hits)
		}
		f.whole(t)
	})
}

func TestWhatCannotBeDoneHereIsSkippedWithItsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, w := newFarm(1)
		w.Redis = noDisk{store{f}}
		if err := fault.Strike(t.Context(), w, history.Fault{Kind: "redis-disk", For: time.Hour}); err != nil {
			t.Error(err)
		}
		if got := f.phases(); got != "health begin skip heal end health" {
			t.Errorf("it recorded %q", got)
		}
		if got := f.of(history.Skip)[0].Note; got != "no file system to fill" {
			t.Errorf("note %q", got)
		}
	})
}

// A context that has ended strikes nothing, and says nothing of the health.
func TestNothingIsStruckOnceTheTimeIsOver(t *testing.T) {
	t.Parallel()
	f, w := newFarm(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fault.Strike(ctx, w, history.Fault{Kind: "kill", Aim: "sweeper"}); err != nil {
		t.Error(err)
	}
	if got := f.phases(); got != "skip" || f.lines[0].Note != "the time for faults was over" {
		t.Errorf("it recorded %+v", f.lines)
	}
}
