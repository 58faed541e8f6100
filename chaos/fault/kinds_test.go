package fault_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// whole is how a fault with one target goes.
const whole = "health begin hit heal end health"

// deeds says what each kind does to a farm of three nodes, of which n1 sweeps.
var deeds = map[string]struct {
	fault  history.Fault
	calls  []string // in order
	phases string
}{
	"kill":      {history.Fault{Aim: "sweeper", For: time.Second}, []string{"kill n1", "start n1"}, whole},
	"term":      {history.Fault{Aim: "sweeper"}, []string{"term n1", "start n1"}, whole},
	"term-kill": {history.Fault{Aim: "sweeper", Delay: 300 * time.Millisecond}, []string{"term n1", "kill n1", "start n1"}, "health begin hit hit heal end health"},
	"stop":      {history.Fault{Aim: "sweeper", For: time.Second}, []string{"stop n1", "cont n1"}, whole},
	"storm": {history.Fault{Aim: "sweeper", Times: 3}, []string{"kill n1", "start n1", "kill n1", "start n1", "kill n1", "start n1"},
		"health begin hit hit hit heal end health"},
	"rolling": {history.Fault{}, []string{"term n1", "start n1", "term n2", "start n2", "term n3", "start n3"},
		"health begin hit hit hit heal end health"},
	"cut-redis": {history.Fault{Aim: "sweeper", For: time.Second}, []string{"cut n1", "mend n1"}, whole},
	"half-open": {history.Fault{Aim: "sweeper"}, []string{"up n1 blocked lost", "down n1 blocked lost", "up n1 open", "down n1 open"}, whole},
	"deaf":      {history.Fault{Aim: "sweeper"}, []string{"up n1 open", "down n1 blocked lost", "up n1 open", "down n1 open"}, whole},
	"dumb":      {history.Fault{Aim: "sweeper"}, []string{"up n1 blocked lost", "down n1 open", "up n1 open", "down n1 open"}, whole},
	"frozen":    {history.Fault{Aim: "sweeper"}, []string{"up n1 blocked", "down n1 blocked", "up n1 open", "down n1 open"}, whole},
	"slow": {history.Fault{Aim: "producer", Delay: 70 * time.Millisecond},
		[]string{"up producers 70ms", "down producers 70ms", "up producers open", "down producers open"}, whole},
	"cut": {history.Fault{Aim: "sweeper"}, []string{"cut n1", "cut n1>n2", "cut n2>n1", "cut n1>n3", "cut n3>n1",
		"clear n1>n3", "clear n3>n1", "clear n1>n2", "clear n2>n1", "mend n1"}, "health begin hit hit hit heal end health"},
	"unplug": {history.Fault{Aim: "sweeper"}, []string{"unplug n1", "plug n1"}, whole},
	"cut-gossip": {history.Fault{Aim: "sweeper"}, []string{"cut n1>n2", "cut n2>n1", "cut n1>n3", "cut n3>n1",
		"clear n1>n3", "clear n3>n1", "clear n1>n2", "clear n2>n1"}, "health begin hit hit heal end health"},
	"gossip-one-way": {history.Fault{Aim: "sweeper", Draw: 3}, []string{"cut n1>n2", "clear n2>n1", "cut n1>n3", "clear n3>n1",
		"clear n1>n3", "clear n3>n1", "clear n1>n2", "clear n2>n1"}, "health begin hit hit heal end health"},
	"gossip-loss": {history.Fault{Aim: "all"}, []string{"lose n1>n2", "lose n2>n1", "lose n1>n3", "lose n3>n1", "lose n2>n3", "lose n3>n2",
		"clear n2>n3", "clear n3>n2", "clear n1>n3", "clear n3>n1", "clear n1>n2", "clear n2>n1"}, "health begin hit hit hit heal end health"},
	"gossip-duplicate": {history.Fault{Aim: "sweeper"}, []string{"double n1>n2", "double n2>n1", "double n1>n3", "double n3>n1",
		"clear n1>n3", "clear n3>n1", "clear n1>n2", "clear n2>n1"}, "health begin hit hit heal end health"},
	"gossip-delay": {history.Fault{Aim: "sweeper"}, []string{"delay n1>n2", "delay n2>n1", "delay n1>n3", "delay n3>n1",
		"clear n1>n3", "clear n3>n1", "clear n1>n2", "clear n2>n1"}, "health begin hit hit heal end health"},
	"redis-kill":    {history.Fault{For: time.Second}, []string{"redis down", "redis not down"}, whole},
	"redis-pause":   {history.Fault{For: time.Second}, []string{"redis paused", "redis not paused"}, whole},
	"redis-full":    {history.Fault{For: time.Second}, []string{"redis full", "redis not full"}, whole},
	"redis-disk":    {history.Fault{For: time.Second}, []string{"redis disk full", "redis not disk full"}, whole},
	"redis-busy":    {history.Fault{For: 3 * time.Second}, []string{"redis busy 3s"}, whole},
	"redis-loading": {history.Fault{For: 3 * time.Second}, []string{"redis loads for 3s"}, whole},
	"script-flush":  {history.Fault{}, []string{"redis scripts flushed"}, whole},
	"flush-all":     {history.Fault{}, []string{"redis flushed"}, whole},
	"rollback":      {history.Fault{For: time.Second}, []string{"redis snapshot", "redis set back"}, whole},
	"failover":      {history.Fault{}, []string{"redis failed over"}, whole},
}

// ofCommands are tested with a real proxy, see real_test.go; the last words of a
// node are in the self-test's plans.
var ofCommands = []string{"drop-reply", "late-copy", "hold", "late", "lose", "last-words"}

func TestEachKindHitsHealsAndLooksAtTheHealth(t *testing.T) {
	t.Parallel()
	for _, k := range fault.Kinds() {
		tt, ok := deeds[k.Name]
		if !ok {
			if !slices.Contains(ofCommands, k.Name) {
				t.Errorf("no test knows the kind %s", k.Name)
			}
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, w := newFarm(3)
				tt.fault.Kind, tt.fault.N = k.Name, 7
				if err := fault.Strike(t.Context(), w, tt.fault); err != nil {
					t.Error(err)
				}
				if got := f.done(); !slices.Equal(got, tt.calls) {
					t.Errorf("it did %q\nwant %q", got, tt.calls)
				}
				if got := f.phases(); got != tt.phases {
					t.Errorf("it recorded %q, want %q", got, tt.phases)
				}
				for _, s := range f.of(history.Health) {
					if !s.OK || s.Note != "" {
						t.Errorf("health: %+v", s)
					}
				}
				f.whole(t)
			})
		})
	}
}

// A fault is cut short when its context ends at the first hit, in the middle of
// what it lasts, or in the middle of its repair: all is mended all the same.
func TestHealingHappensWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range deeds {
		for _, phase := range []string{history.Begin, history.Hit, history.Heal} {
			t.Run(name+" in "+phase, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, w := newFarm(3)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					f.onLine = func(s history.Strike) {
						if s.Phase == phase {
							cancel()
						}
					}
					tt.fault.Kind, tt.fault.For = name, 10*time.Minute
					start := time.Now()
					if name == "rollback" && phase == history.Hit {
						tt.fault.For = time.Second // or there is none
					}
					if phase == history.Heal {
						tt.fault.For = time.Second
					}
					if err := fault.Strike(ctx, w, tt.fault); err != nil {
						t.Error(err)
					}
					if took := time.Since(start); took > time.Minute {
						t.Errorf("it took %v: it was not cut short", took)
					}
					f.whole(t)
					if got := f.phases(); !strings.HasSuffix(got, "heal end health") {
						t.Errorf("it recorded %q", got)
					}
				})
			})
		}
	}
}

func TestKindsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range fault.Kinds() {
		if seen[k.Name] || k.Name == "" || len(k.Says) < 20 || len(k.Aims) == 0 {
			t.Errorf("kind %+v: its name must be its own, and it must say what it does and at whom", k)
		}
		seen[k.Name] = true
	}
}

func TestAPlanIsCheckedBeforeAnythingIsStruck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault history.Fault
		want  string // in the error; empty: there is none
	}{
		"a kind with its aim":        {history.Fault{Kind: "kill", Aim: "others"}, ""},
		"an aim may be left out":     {history.Fault{Kind: "redis-kill"}, ""},
		"an unknown kind":            {history.Fault{N: 4, Kind: "klil"}, `fault 4: there is no kind "klil"`},
		"an aim of another kind":     {history.Fault{N: 4, Kind: "kill", Aim: "redis"}, `fault 4: kill cannot aim at "redis", but at holder,`},
		"producers have no gossip":   {history.Fault{Kind: "cut-gossip", Aim: "producer"}, "cannot aim"},
		"nodes are not Redis itself": {history.Fault{Kind: "redis-pause", Aim: "random"}, "cannot aim"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := newFarm(2)
			for _, err := range []error{fault.Check(tt.fault), func() error {
				if tt.want == "" {
					return nil
				}
				return fault.Strike(t.Context(), w, tt.fault)
			}()} {
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			}
			if len(f.lines) > 0 {
				t.Errorf("it recorded %+v", f.lines)
			}
		})
	}
}
