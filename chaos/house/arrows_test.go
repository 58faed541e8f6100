package house

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// arrow says what a package, and all below it that has no arrow of its own, may
// import of ours, besides what lies below it.
type arrow struct {
	from string
	to   []string
	why  string
}

var arrows = []arrow{
	{"queue", nil, "the job space must be usable, and readable, without knowing of nodes, locks or gossip"},
	{"lock", nil, "a tenure is a matter between a token and Redis; what is done with it is the sweeper's"},
	{"cluster", nil, "gossip is evidence only: whoever moves jobs by it must do so in a script, so it has no hand on queue"},
	{"sweeper", []string{"queue", "lock"}, "it acts by scripts and by its tenure; members' deaths are told to it, so that it can be tested without a network"},
	{"node", []string{"queue", "lock", "cluster", "sweeper"}, "the one place where the parts are tied together"},
	{"node/webhook", []string{"queue"}, "a handler is what a user could have written: it knows jobs and outcomes"},
	{"node/command", []string{"queue"}, "a handler is what a user could have written: it knows jobs and outcomes"},
	{"chaos", []string{"queue"}, "it judges nodes from outside, as processes, and reads Redis by itself; code that it shared with them would share their faults"},
	{"chaos/redistest", nil, "every package's tests import it: an arrow back would be a cycle"},
	{"chaos/house", nil, "it reads source, and must work while the rest does not compile"},
	{"cmd", []string{"queue", "lock", "cluster", "sweeper", "node", "chaos"}, "the binary may use every part, and nothing imports it"},
	{"deploy", nil, "it runs the binary"},
}

// forTests is what the tests of any package may import besides.
const forTests = "chaos/redistest"

// testArrows are what the tests of single packages may import besides.
var testArrows = []arrow{
	{"node", []string{"chaos/life", "chaos/history"}, "the simulation is judged by the model that judges chaos runs: a second one would be a second opinion on what a job's life is"},
}

// wall keeps what others wrote in one place.
type wall struct {
	what   string // import path, and all below
	inside []string
	tests  bool // tests may import it anywhere
	why    string
}

var walls = []wall{
	{"github.com/hashicorp/memberlist", []string{"cluster"}, true, "its callbacks run under its own lock and may not block: one package knows how to live with that"},
	{"github.com/bsm/redislock", []string{"lock"}, false, "a lock without epoch and deadline is not enough to act by"},
	{"github.com/testcontainers/testcontainers-go", []string{"chaos/redistest"}, false, "tests see one interface; and no binary links a Docker client"},
	{"github.com/moby/moby", []string{"chaos/redistest"}, false, "tests see one interface; and no binary links a Docker client"},
	{"github.com/alicebob/miniredis/v2", []string{"cmd/kelpie", "chaos/redistest"}, true, "it keeps nothing: only the demo may run jobs on it"},
	{"github.com/spf13/cobra", []string{"cmd"}, false, "flags are the binary's; packages take options"},
	{"github.com/prometheus/client_golang", []string{"node"}, true, "who embeds queue chooses the metrics"},
	{"net/http", []string{"node", "cmd", "chaos"}, true, "the job space and the sweeper speak to Redis only"},
}

// broken says which rule e breaks, or nothing.
func broken(e edge) string {
	if !e.ours {
		return brokenWall(e)
	}
	if e.test && (below(e.to, forTests) || inTestsOf(e)) || below(e.to, e.from) || e.from == e.to {
		return ""
	}
	a := arrowOf(e.from)
	if a == nil {
		return fmt.Sprintf("%s: package %s has no arrow; give it one in chaos/house, with the reason", e.at, e.from)
	}
	if below(e.to, forTests) {
		return fmt.Sprintf("%s: only tests may import %s", e.at, forTests)
	}
	if below(e.to, a.from) || slices.ContainsFunc(a.to, func(to string) bool { return below(e.to, to) }) {
		return ""
	}
	may := "nothing of ours"
	if len(a.to) > 0 {
		may = strings.Join(a.to, ", ")
	}
	return fmt.Sprintf("%s: %s may import %s, not %s: %s", e.at, a.from, may, e.to, a.why)
}

// inTestsOf reports whether an arrow for tests allows e.
func inTestsOf(e edge) bool {
	return slices.ContainsFunc(testArrows, func(a arrow) bool { return a.from == e.from && slices.Contains(a.to, e.to) })
}

func brokenWall(e edge) string {
	for _, w := range walls {
		inside := slices.ContainsFunc(w.inside, func(pkg string) bool { return below(e.from, pkg) })
		if below(e.to, w.what) && !inside && !(e.test && w.tests) {
			return fmt.Sprintf("%s: %s is for %s only: %s", e.at, w.what, strings.Join(w.inside, ", "), w.why)
		}
	}
	return ""
}

// arrowOf returns the arrow of the nearest package at or above pkg.
func arrowOf(pkg string) *arrow {
	var nearest *arrow
	for i, a := range arrows {
		if below(pkg, a.from) && (nearest == nil || len(a.from) > len(nearest.from)) {
			nearest = &arrows[i]
		}
	}
	return nearest
}

func TestImportsFollowTheArrows(t *testing.T) {
	t.Parallel()
	for _, e := range edges(source(t)) {
		if words := broken(e); words != "" {
			t.Error(words)
		}
	}
}

func TestEveryPackageHasAnArrow(t *testing.T) {
	t.Parallel()
	for _, f := range source(t) {
		if arrowOf(f.dir) == nil {
			t.Errorf("%s: package %s has no arrow; give it one in chaos/house, with the reason", f.path, f.dir)
		}
	}
}

// TestTheArrowsCanBreak holds the test to its word on imports that nobody made.
func TestTheArrowsCanBreak(t *testing.T) {
	t.Parallel()
	ours := func(from, to string) edge { return edge{from: from, to: to, ours: true} }
	inTest := func(e edge) edge { e.test = true; return e }
	foreign := func(from, to string) edge { return edge{from: from, to: to} }
	for name, tt := range map[string]struct {
		edge edge
		want string // in the complaint; empty: there is none
	}{
		"queue does not know nodes":               {ours("queue", "node"), "queue may import nothing of ours, not node"},
		"nor do its tests":                        {inTest(ours("queue", "node")), "not node"},
		"nor what is below it":                    {ours("queue/internal/wire", "lock"), "not lock"},
		"its own parts are its own":               {ours("queue", "queue/lua"), ""},
		"and know each other":                     {ours("queue/queuetest", "queue"), ""},
		"lock is alone":                           {ours("lock", "queue"), "lock may import nothing of ours"},
		"cluster has no hand on jobs":             {ours("cluster", "queue"), "it has no hand on queue"},
		"the sweeper uses queue":                  {ours("sweeper", "queue"), ""},
		"the sweeper uses lock":                   {ours("sweeper", "lock"), ""},
		"but not gossip":                          {ours("sweeper", "cluster"), "sweeper may import queue, lock, not cluster"},
		"node ties all together":                  {ours("node", "sweeper"), ""},
		"node has its handlers":                   {ours("node", "node/webhook"), ""},
		"a handler does not know the node":        {ours("node/webhook", "node"), "node/webhook may import queue, not node"},
		"nor the lock":                            {ours("node/webhook", "lock"), "not lock"},
		"another part of node does":               {ours("node/api", "cluster"), ""},
		"chaos reads queue":                       {ours("chaos", "queue"), ""},
		"but shares nothing with the node":        {ours("chaos", "node"), "share their faults"},
		"redistest is at the bottom":              {ours("chaos/redistest", "queue"), "chaos/redistest may import nothing of ours"},
		"tests may use it":                        {inTest(ours("lock", "chaos/redistest")), ""},
		"the node's tests may use the model":      {inTest(ours("node", "chaos/life")), ""},
		"the node may not":                        {ours("node", "chaos/life"), "not chaos/life"},
		"nor its tests the judge":                 {inTest(ours("node", "chaos/check")), "not chaos/check"},
		"nor other tests the model":               {inTest(ours("sweeper", "chaos/life")), "not chaos/life"},
		"programs may not":                        {ours("cmd/kelpie", "chaos/redistest"), "only tests may import chaos/redistest"},
		"the binary may use every part":           {ours("cmd/kelpie", "node/webhook"), ""},
		"nobody imports the binary":               {ours("node", "cmd/kelpie"), "not cmd/kelpie"},
		"a name that begins alike is not below":   {ours("sweeper", "queueing"), "not queueing"},
		"a new package needs an arrow":            {ours("helpers", "queue"), "package helpers has no arrow"},
		"memberlist stays in cluster":             {foreign("node", "github.com/hashicorp/memberlist"), "is for cluster only"},
		"there it is welcome":                     {foreign("cluster", "github.com/hashicorp/memberlist"), ""},
		"redislock stays in lock":                 {foreign("sweeper", "github.com/bsm/redislock"), "is for lock only"},
		"also in tests":                           {inTest(foreign("sweeper", "github.com/bsm/redislock")), "is for lock only"},
		"no node links a Docker client":           {foreign("node", "github.com/testcontainers/testcontainers-go/wait"), "is for chaos/redistest only"},
		"no node runs on miniredis":               {foreign("node", "github.com/alicebob/miniredis/v2"), "is for cmd/kelpie, chaos/redistest only"},
		"its tests may":                           {inTest(foreign("node", "github.com/alicebob/miniredis/v2")), ""},
		"queue speaks no HTTP":                    {foreign("queue", "net/http"), "is for node, cmd, chaos only"},
		"what has no wall is free":                {foreign("queue", "github.com/google/uuid"), ""},
		"a library that begins alike has no wall": {foreign("queue", "net/httpish"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := broken(tt.edge)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("broken(%+v) = %q, want %q", tt.edge, got, tt.want)
			}
		})
	}
}

func TestEdgesAreReadFromSource(t *testing.T) {
	t.Parallel()
	text := `package webhook_test
import (
	"net/http"
	q "github.com/kelpiehq/kelpie/queue"
)
`
	f, err := parse("node/webhook/sign_test.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", edges([]file{f}))
	want := "[{from:node/webhook to:net/http ours:false test:true at:node/webhook/sign_test.go:3:2} " +
		"{from:node/webhook to:queue ours:true test:true at:node/webhook/sign_test.go:4:2}]"
	if got != want {
		t.Errorf("edges = %s\nwant    %s", got, want)
	}
}

func TestEveryRuleHasAReason(t *testing.T) {
	t.Parallel()
	for _, a := range slices.Concat(arrows, testArrows) {
		if a.why == "" {
			t.Errorf("the arrow of %s has no reason", a.from)
		}
	}
	for _, w := range walls {
		if w.why == "" {
			t.Errorf("the wall around %s has no reason", w.what)
		}
	}
}
