package cluster

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

func TestNodesFindEachOtherThroughPeers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var known []string // as live nodes would keep it in Redis
	peers := func(context.Context) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(known) == 0 {
			return nil, errors.New("nothing is known yet")
		}
		return append([]string{"not an address"}, known...), nil
	}
	n := newNetwork()
	var nodes []*peer
	for _, name := range []string{"n1", "n2", "n3"} {
		p := start(t, n, Config{Name: name, Peers: peers, Meta: Meta{Session: "s-" + name, RedisOK: true}})
		mu.Lock()
		known = append(known, p.Addr())
		mu.Unlock()
		nodes = append(nodes, p)
	}
	for _, p := range nodes {
		for _, q := range nodes {
			m := p.sees(q.Name(), Alive)
			if m.Node != q.cfg.Name || m.Addr != q.Addr() || m.Meta.Session != "s-"+m.Node || m.Self != (p == q) {
				t.Errorf("%s sees %+v", p.Name(), m)
			}
		}
	}
}

func TestASeedNameIsResolvedAnewInEachRound(t *testing.T) {
	t.Parallel()
	n := newNetwork()
	a := start(t, n, Config{Name: "a"})
	var asked atomic.Int32
	_, port, _ := net.SplitHostPort(a.Addr())
	b := start(t, n, Config{Name: "b", Seeds: []string{"kelpie.test:" + port}}, func(c *Cluster) {
		c.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			if asked.Add(1) < 3 {
				return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
			}
			return []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1")}, nil
		}
	})
	b.sees(a.Name(), Alive)
	a.sees(b.Name(), Alive)
	if asked.Load() < 3 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestClustersNeverMix(t *testing.T) {
	t.Parallel()
	one, two := NewKey(), NewKey()
	for name, tt := range map[string]struct {
		a, b Config
		line string // of the one who is asked, once it refuses
	}{
		"with different labels":              {Config{Label: "herd-a"}, Config{Label: "herd-b"}, "unacceptable label"},
		"with different keys":                {Config{Key: one}, Config{Key: two}, "failed to receive"},
		"when only one of them is encrypted": {Config{Key: one}, Config{}, "failed to receive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var heard journal
			tt.a.Name, tt.a.Log = "a", heard.logger()
			a := start(t, newNetwork(), tt.a)
			tt.b.Name, tt.b.Seeds = "b", []string{a.Addr()}
			b := start(t, newNetwork(), tt.b)
			eventually(t, "a refuses", func() bool { return heard.count(tt.line) > 0 })
			b.stop()
			if len(a.Members()) != 1 || len(b.Members()) != 1 {
				t.Errorf("a sees %v, b sees %v", a.Members(), b.Members())
			}
		})
	}
}

func TestAKeyCanBeChangedMemberByMember(t *testing.T) {
	t.Parallel()
	old, fresh := NewKey(), NewKey()
	n := newNetwork()
	a := start(t, n, Config{Name: "a", Key: old, AcceptKeys: [][]byte{fresh}})
	b := start(t, n, Config{Name: "b", Key: fresh, AcceptKeys: [][]byte{old}, Seeds: []string{a.Addr()}})
	a.sees(b.Name(), Alive)
	b.sees(a.Name(), Alive)
}

func TestARestartUnderTheSameNameAndPortIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	n := newNetwork()
	a := start(t, n, Config{Name: "a"})
	b := start(t, n, Config{Name: "b", Seeds: []string{a.Addr()}})
	a.sees(b.Name(), Alive)
	b.kill()
	killed := time.Now()
	// The wrap would silence the new one with the old: a network of its own.
	again := start(t, newNetwork(), Config{Name: "b", Bind: b.Addr(), Seeds: []string{a.Addr()}})
	a.sees(again.Name(), Alive)
	if took := time.Since(killed); took > 3*time.Second {
		t.Errorf("seen after %v", took)
	}
	if m, _ := a.roster.get(b.Name()); m.State == Left {
		t.Error("the old one was killed, and shows as left")
	}
	a.sees(b.Name(), Dead)
}

func TestAnAbruptDeathIsSeenByTheFastPreset(t *testing.T) {
	t.Parallel()
	n := newNetwork()
	a := start(t, n, Config{Name: "a"})
	b := start(t, n, Config{Name: "b", Seeds: []string{a.Addr()}})
	c := start(t, n, Config{Name: "c", Seeds: []string{a.Addr()}, Meta: Meta{Session: "s-c"}})
	for _, p := range []*peer{a, b} {
		p.sees(c.Name(), Alive)
		if p.Dead("s-c") || p.Dead("s-unknown") || p.Dead("") {
			t.Error("nobody is dead yet, and the unknown never are")
		}
	}
	c.kill()
	killed := time.Now()
	for _, p := range []*peer{a, b} {
		p.sees(c.Name(), Dead)
		if !p.Dead("s-c") {
			t.Error("the session of a dead member is not called dead")
		}
	}
	took := time.Since(killed)
	t.Logf("seen by both after %v", took)
	if took > 8*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestLeavingIsSeenAsLeftAndIsQuick(t *testing.T) {
	t.Parallel()
	n := newNetwork()
	a := start(t, n, Config{Name: "a"})
	b := start(t, n, Config{Name: "b", Seeds: []string{a.Addr()}})
	c := start(t, n, Config{Name: "c", Seeds: []string{a.Addr()}, Meta: Meta{Session: "s-c"}})
	for _, p := range []*peer{a, b} {
		p.sees(c.Name(), Alive)
		c.sees(p.Name(), Alive)
	}
	took := c.stop()
	t.Logf("left within %v", took)
	if took > time.Second {
		t.Errorf("leaving took %v", took)
	}
	for _, p := range []*peer{a, b} {
		p.awaits("c to be gone", func() bool { m, _ := p.roster.get(c.Name()); return m.State != Alive })
		if m, _ := p.roster.get(c.Name()); m.State != Left || p.Dead("s-c") {
			t.Errorf("%s sees %+v", p.Name(), m)
		}
	}
	if m, _ := c.roster.get(c.Name()); m.State != Left {
		t.Errorf("it sees itself as %v", m.State)
	}
}

func TestAPartitionThatOutlastsTheDeadTimeHeals(t *testing.T) {
	t.Parallel()
	quick := func(c *Cluster) {
		tune := &c.cfg.tune
		tune.probe, tune.probeTimeout, tune.gossip = 100*time.Millisecond, 40*time.Millisecond, 20*time.Millisecond
		tune.forget, tune.rejoin = 300*time.Millisecond, 400*time.Millisecond
	}
	n := newNetwork()
	first := start(t, n, Config{Name: "n1"}, quick)
	nodes := []*peer{first}
	for _, name := range []string{"n2", "n3", "n4"} {
		nodes = append(nodes, start(t, n, Config{Name: name, Seeds: []string{first.Addr()}}, quick))
	}
	all := func(s State, ps, qs []*peer) {
		t.Helper()
		for _, p := range ps {
			for _, q := range qs {
				p.sees(q.Name(), s)
			}
		}
	}
	all(Alive, nodes, nodes)
	left, right := nodes[:2], nodes[2:]
	n.split(true, left, right)
	all(Dead, left, right)
	all(Dead, right, left)
	// So many joins in vain that memberlist has forgotten the other side.
	for seen := map[string]int{}; len(seen) < 4 || seen[left[0].Addr()] < 8 || seen[right[0].Addr()] < 8; {
		select {
		case from := <-n.refused:
			seen[from]++
		case <-time.After(patience):
			t.Fatalf("no more joins are tried: %v", seen)
		}
	}
	n.split(false, left, right)
	healed := time.Now()
	all(Alive, left, right)
	all(Alive, right, left)
	t.Logf("healed within %v", time.Since(healed))
}

func TestTwoNodesMayBearTheSameName(t *testing.T) {
	t.Parallel()
	var heard journal
	n := newNetwork()
	a := start(t, n, Config{Name: "twin", Log: heard.logger()})
	b := start(t, n, Config{Name: "twin", Seeds: []string{a.Addr()}})
	a.sees(b.Name(), Alive)
	b.sees(a.Name(), Alive)
	if a.Name() == b.Name() {
		t.Fatal("same gossip name")
	}
	members := a.Members()
	probe, err := New(Config{Name: "reader", Log: heard.logger()}) // review belongs to Run's loop
	if err != nil {
		t.Fatal(err)
	}
	probe.review(members, time.Now())
	if heard.count("have this node name") != 0 {
		t.Error("warned at once; a restart looks the same for some seconds")
	}
	for range 3 {
		probe.review(members, time.Now().Add(clashAfter+time.Second))
	}
	if heard.count("have this node name") != 1 {
		t.Errorf("want one warning, got %s", heard.String())
	}
}

// C145: memberlist panics above 512 bytes.
func TestAnyMetadataIsBoundedAndKeepsTheSession(t *testing.T) {
	t.Parallel()
	n := newNetwork()
	longest := strings.Repeat("n", maxNodeName)
	queues := strings.Repeat("a-queue-with-a-long-name,", 200)
	a := start(t, n, Config{Name: "a"})
	b := start(t, n, Config{Name: longest, Label: "kelpie", Seeds: []string{a.Addr()},
		Meta: Meta{Session: strings.Repeat("s", maxSession), Version: queues, HTTP: "127.0.0.1:9746"}})
	m := a.sees(b.Name(), Alive)
	if m.Node != longest || m.Meta.HTTP != "127.0.0.1:9746" || m.Meta.Version != "" || len(m.Meta.Session) != maxSession {
		t.Errorf("got %+v", m)
	}
	b.Update(Meta{Session: "s2", HTTP: queues, Version: "v1", Draining: true})
	a.awaits("the update", func() bool { m, _ = a.roster.get(b.Name()); return m.Meta.Draining })
	if m.Meta != (Meta{Session: "s2", Version: "v1", Draining: true}) {
		t.Errorf("got %+v", m.Meta)
	}
}

func TestMessagesArriveOutsideOfCallbacks(t *testing.T) {
	t.Parallel()
	n := newNetwork()
	type got struct{ from, msg string }
	heard := make(chan got, 10)
	var a *peer
	armed := make(chan struct{})
	a = start(t, n, Config{Name: "a", OnMessage: func(from string, msg []byte) {
		<-armed
		a.Members() // all of it would deadlock within a callback of memberlist
		a.Update(Meta{Session: "changed"})
		a.Health()
		_ = a.list.Members()
		heard <- got{from, string(msg)}
	}})
	close(armed)
	b := start(t, n, Config{Name: "b", Key: nil, Seeds: []string{a.Addr()}})
	b.sees(a.Name(), Alive)
	if err := b.Send(a.Name(), []byte("lock is free")); err != nil {
		t.Fatal(err)
	}
	select {
	case g := <-heard:
		if g != (got{b.Name(), "lock is free"}) {
			t.Errorf("got %+v", g)
		}
	case <-time.After(patience):
		t.Fatal("nothing arrived")
	}
	b.awaits("the update", func() bool { m, _ := b.roster.get(a.Name()); return m.Meta.Session == "changed" })
	for name, err := range map[string]error{
		"a message over the limit is refused":   b.Send(a.Name(), make([]byte, maxMessage+1)),
		"a message to nobody is refused":        b.Send("nobody", nil),
		"a message before the start is refused": func() error { c, _ := New(Config{Name: "c"}); return c.send(Member{}, nil) }(),
		"a message after the end is refused":    func() error { b.stop(); return b.Send(a.Name(), nil) }(),
	} {
		if err == nil {
			t.Error(name)
		}
	}
}

func TestCallbacksDoNotDeadlockUnderLoad(t *testing.T) {
	t.Parallel()
	n := newNetwork()
	a := start(t, n, Config{Name: "a", OnMessage: func(string, []byte) {}})
	var nodes []*peer
	for _, name := range []string{"b", "c", "d"} {
		nodes = append(nodes, start(t, n, Config{Name: name, Seeds: []string{a.Addr()}, Meta: Meta{Session: name}}))
	}
	var all sync.WaitGroup
	for _, p := range nodes {
		all.Go(func() {
			for i := range 200 {
				p.Update(Meta{Session: p.cfg.Name, Draining: i%2 == 0})
				_ = p.Send(a.Name(), []byte("x"))
				for _, m := range a.Members() {
					a.Dead(m.Meta.Session)
				}
			}
			p.Update(Meta{Session: p.cfg.Name, Version: "last"})
		})
	}
	all.Wait()
	for _, p := range nodes {
		a.awaits("the last update", func() bool { m, _ := a.roster.get(p.Name()); return m.Meta.Version == "last" })
	}
}

func TestWhatMemberlistSaysAfterShutdownIsHarmless(t *testing.T) {
	t.Parallel()
	n := newNetwork()
	a := start(t, n, Config{Name: "a"})
	b := start(t, n, Config{Name: "b", Seeds: []string{a.Addr()}})
	a.sees(b.Name(), Alive)
	a.stop()
	before := a.Members()
	d := delegate{a.Cluster}
	gone := &memberlist.Node{Name: b.Name(), Addr: net.IPv4(127, 0, 0, 1), Port: 1}
	d.NotifyLeave(gone)
	d.NotifyJoin(&memberlist.Node{Name: "late-1", Addr: net.IPv4(127, 0, 0, 1), Meta: []byte{9, 9}})
	d.NotifyUpdate(gone)
	d.NotifyMsg(encodeMessage(kindLeave, b.Name(), nil))
	d.NotifyMsg(encodeMessage(kindDirect, b.Name(), []byte("x")))
	if len(d.NodeMeta(memberlist.MetaMaxSize)) > memberlist.MetaMaxSize || a.Health() != -1 {
		t.Error("metadata too long, or health of what does not run")
	}
	after := a.Members()
	if len(before) != len(after) || before[1] != after[1] {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestAStopDoesNotWaitForAJoinThatHangs(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	a := start(t, newNetwork(), Config{Name: "a", Preset: WAN, Seeds: []string{silent.Addr().String()}})
	conn, err := silent.Accept() // the join is under way, and gets no answer
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if took := a.stop(); took > time.Second {
		t.Errorf("the stop took %v", took)
	}
}

func TestRunIsCalledOnce(t *testing.T) {
	t.Parallel()
	a := start(t, newNetwork(), Config{Name: "a"})
	if err := a.Run(t.Context()); err == nil {
		t.Error("a second Run did not fail")
	}
}

func TestAnEmptyClusterHasOneMemberAndAnAddress(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Name: "a"})
	if err != nil || c.Addr() != "" || len(c.Members()) != 0 {
		t.Fatalf("before Run: %v, %q, %v", err, c.Addr(), c.Members())
	}
	a := start(t, newNetwork(), Config{Name: "a"})
	m := a.sees(a.Name(), Alive)
	if !m.Self || m.Addr != a.Addr() || a.Health() != 0 || !strings.HasPrefix(a.Name(), "a-") {
		t.Errorf("%+v, address %s, health %d", m, a.Addr(), a.Health())
	}
}
