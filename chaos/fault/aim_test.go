package fault_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/history"
)

func TestAims(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault   history.Fault
		prepare func(f *farm, w *fault.World)
		hit     []string // names, in any order
		skip    string   // in the note
	}{
		"the holder is who holds jobs": {
			fault:   history.Fault{Kind: "kill", Aim: "holder"},
			prepare: func(f *farm, _ *fault.World) { f.holds["n2-1"] = []string{"mail/a"} },
			hit:     []string{"n2"},
		},
		"without jobs there is no holder": {
			fault: history.Fault{Kind: "kill", Aim: "holder"},
			skip:  "there was no node for aim holder",
		},
		"jobs of a session that is no more make no holder": {
			fault:   history.Fault{Kind: "kill", Aim: "holder"},
			prepare: func(f *farm, _ *fault.World) { f.holds["n2-0"] = []string{"mail/a"} },
			skip:    "there was no node for aim holder",
		},
		"the sweeper holds the lock": {
			fault:   history.Fault{Kind: "stop", Aim: "sweeper"},
			prepare: func(f *farm, _ *fault.World) { f.sweeper = "n3" },
			hit:     []string{"n3"},
		},
		"nobody may hold the lock": {
			fault:   history.Fault{Kind: "stop", Aim: "sweeper"},
			prepare: func(f *farm, _ *fault.World) { f.sweeper = "" },
			skip:    "there was no node for aim sweeper",
		},
		"all are all":                      {fault: history.Fault{Kind: "kill", Aim: "all"}, hit: []string{"n1", "n2", "n3"}},
		"all share the slow way":           {fault: history.Fault{Kind: "slow", Aim: "all"}, hit: []string{"n1", "n2", "n3"}},
		"producers share one way":          {fault: history.Fault{Kind: "cut-redis", Aim: "producer"}, hit: []string{"producers"}},
		"without an aim it is the default": {fault: history.Fault{Kind: "redis-pause"}, hit: []string{"redis"}},
		"an only node is not all but one": {
			fault:   history.Fault{Kind: "kill", Aim: "others"},
			prepare: func(_ *farm, w *fault.World) { w.Nodes = w.Nodes[:1] },
			skip:    "there was no node for aim others",
		},
		"producers that have ended are not there": {
			fault: history.Fault{Kind: "kill", Aim: "producer"},
			prepare: func(_ *farm, w *fault.World) {
				for _, p := range w.Producers {
					p.Kill()
				}
			},
			skip: "producer was in the hands of another fault, or not there",
		},
		"no way of producers is no target":   {history.Fault{Kind: "slow", Aim: "producer"}, func(_ *farm, w *fault.World) { w.Door = nil }, nil, "not there"},
		"somebody's own Redis is left alone": {history.Fault{Kind: "redis-kill"}, func(_ *farm, w *fault.World) { w.Redis = nil }, nil, "it needs a Redis of the run's own"},
		"one server cannot fail over":        {history.Fault{Kind: "failover"}, func(_ *farm, w *fault.World) { w.Failover = nil }, nil, "it needs a Redis with replicas"},
		"without proxies nothing is cut":     {history.Fault{Kind: "cut-redis"}, func(_ *farm, w *fault.World) { w.Ways, w.Door = nil, nil }, nil, "it needs a way to Redis"},
		"without links gossip is whole":      {history.Fault{Kind: "cut"}, func(_ *farm, w *fault.World) { w.Links = nil }, nil, "it needs gossip"},
		"one network has no cables":          {history.Fault{Kind: "unplug"}, func(_ *farm, w *fault.World) { w.Cables = nil }, nil, "it needs a network namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, w := newFarm(3)
				if tt.prepare != nil {
					tt.prepare(f, w)
				}
				if err := fault.Strike(t.Context(), w, tt.fault); err != nil {
					t.Error(err)
				}
				var hit []string
				for _, s := range f.of(history.Hit) {
					hit = append(hit, s.Target)
				}
				if slices.Sort(hit); !slices.Equal(hit, tt.hit) {
					t.Errorf("it hit %q, want %q", hit, tt.hit)
				}
				skipped := f.of(history.Skip)
				if (tt.skip != "") != (len(skipped) == 1) || tt.skip != "" && !strings.Contains(skipped[0].Note, tt.skip) {
					t.Errorf("skipped: %+v, want %q", skipped, tt.skip)
				}
				if tt.skip != "" && len(f.of(history.Begin)) > 0 {
					t.Error("a skipped fault had begun")
				}
			})
		})
	}
}

// The same draw hits the same node of the same herd, others come to the rest.
func TestTheDrawChoosesWhom(t *testing.T) {
	t.Parallel()
	hits := map[string]bool{}
	for draw := range uint64(20) {
		var once []string
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				f, w := newFarm(3)
				if err := fault.Strike(t.Context(), w, history.Fault{Kind: "kill", Aim: "random", Draw: draw}); err != nil {
					t.Error(err)
				}
				once = append(once, f.of(history.Hit)[0].Target)
			})
		}
		if once[0] != once[1] {
			t.Errorf("draw %d hit %s, then %s", draw, once[0], once[1])
		}
		hits[once[0]] = true
	}
	if len(hits) != 3 {
		t.Errorf("20 draws hit only %v", hits)
	}
}

func TestAllButOneSparesOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, w := newFarm(4)
		if err := fault.Strike(t.Context(), w, history.Fault{Kind: "kill", Aim: "others"}); err != nil {
			t.Error(err)
		}
		hit := map[string]bool{}
		for _, s := range f.of(history.Hit) {
			hit[s.Target] = true
		}
		if len(hit) != 3 {
			t.Errorf("it hit %v, want three of four", hit)
		}
	})
}

// While Redis is away its last answer says whose session it is; who holds jobs
// nobody can say.
func TestAimsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	for aim, want := range map[string]string{"random": "n1-1", "holder": "", "sweeper": ""} {
		t.Run(aim, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, w := newFarm(1)
				f.holds["n1-1"] = []string{"mail/a"}
				f.onLine = func(s history.Strike) {
					if s.Phase == history.Health {
						f.mu.Lock()
						f.down = errors.New("gone")
						f.mu.Unlock()
					}
				}
				if err := fault.Strike(t.Context(), w, history.Fault{Kind: "kill", Aim: aim}); err != nil {
					t.Error(err)
				}
				hits, skips := f.of(history.Hit), f.of(history.Skip)
				switch {
				case want == "" && (len(hits) > 0 || len(skips) != 1 || !strings.Contains(skips[0].Note, "gone")):
					t.Errorf("it hit %+v and skipped %+v", hits, skips)
				case want != "" && (len(hits) != 1 || hits[0].Session != want || !strings.Contains(hits[0].Note, "could not be read: gone")):
					t.Errorf("it hit %+v, want session %s", hits, want)
				}
			})
		})
	}
}
