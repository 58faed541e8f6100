package herd

import (
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/process"
)

func read(t *testing.T, path string, v any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestASpecTellsAllItsFaults(t *testing.T) {
	t.Parallel()
	_, err := New(Spec{Names: []string{"a"}, Skew: map[int]time.Duration{0: time.Second}})
	for _, want := range []string{"needs a kennel", "needs a program, a folder", "0 nodes: must be 1 to 250", "1 names for 0 nodes", "need the build for them"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
}

func TestANodeGetsWhatTheSpecSays(t *testing.T) {
	t.Parallel()
	s := Spec{
		Kennel: &process.Kennel{}, Kelpie: "/bin/kelpie", Dir: "/run", Prefix: "p", RedisURL: func(n int) string { return []string{"r0", "r1"}[n] },
		Log: "debug", StateDirs: true, Skew: map[int]time.Duration{1: -2 * time.Minute}, Skewed: "/bin/skewed",
	}
	s.Settings.Nodes, s.Settings.Workers, s.Settings.Queues = 2, 7, []string{"a", "b=3"}
	s.Settings.Heartbeat, s.Settings.Silence, s.Settings.Lease, s.Settings.Drain = time.Second, 2*time.Second, 9*time.Second, 3*time.Second
	h, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	h.dir, h.network = "/run", &loopback{port: "0"}
	const rest = " --chaos /run --workers 7 --prefix p --queues a,b=3 --log-level debug --heartbeat 1s --silence 2s --lease 9s --drain-timeout 3s --state-dir /run/state/"
	for i, want := range []string{
		"/bin/kelpie node --redis r0 --name n1 --gossip 127.0.66.1:0" + rest + "n1",
		"KELPIE_CHAOS_SKEW=-2m0s /bin/skewed node --redis r1 --name n2 --gossip 127.0.66.2:0" + rest + "n2",
	} {
		c := h.nodes[i].command()
		if got := strings.Join(append(append(c.Env, c.Program), c.Args...), " "); got != want {
			t.Errorf("node %d runs\n%s\nwant\n%s", i, got, want)
		}
	}
}

func TestWhereOneAddressMustDoEachNodeHasAPort(t *testing.T) {
	t.Parallel()
	p := &ports{nodes: 5}
	if err := p.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range 5 {
		host, _, err := net.SplitHostPort(p.peer(i))
		if err != nil || host != "127.0.0.1" || seen[p.peer(i)] || p.gossip(i) != p.peer(i) {
			t.Errorf("node %d: peer %s, gossip %s, %v", i, p.peer(i), p.gossip(i), err)
		}
		seen[p.peer(i)] = true
	}
	if err := p.plug(0, false); err == nil {
		t.Error("a node without a cable was unplugged")
	}
}
