package fault_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/fault/herd"
	"github.com/kelpiehq/kelpie/chaos/fault/proxy"
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// farm is a world without processes: it notes what is done to it, and shows a
// node as Redis would.
type farm struct {
	mu      sync.Mutex
	calls   []string         // what was done, in order
	harmed  map[string]int   // what is not as it was; 0: mended
	lines   []history.Strike // of the record
	nodes   map[string]*dog
	sweeper string // a node
	holds   map[string][]string
	down    error // Redis does not answer
	onLine  func(history.Strike)
}

// dog is a process of the farm.
type dog struct {
	farm    *farm
	name    string
	pid     int
	running bool
	stopped bool
	ended   chan struct{}
	since   time.Time // it beats from then on
	dead    string    // the session of a process that is gone, not condemned yet
	died    time.Time // when that was
	mute    bool      // it never beats
	stays   bool      // it does not hear SIGTERM
	stuck   error     // it cannot be started
}

// newFarm has nodes n1, n2, ... that run, and two producers.
func newFarm(nodes int) (*farm, *fault.World) {
	f := &farm{harmed: map[string]int{}, nodes: map[string]*dog{}, holds: map[string][]string{}, sweeper: "n1"}
	w := &fault.World{
		Ways: map[string]fault.Way{}, Cables: map[string]fault.Cable{}, Door: wire{f, "producers"},
		Links: f, Redis: store{f}, Space: f, Record: f.record, Failover: store{f}.failover,
		Settings: history.Settings{Queues: []string{"orders", "mail"}, Heartbeat: 500 * time.Millisecond, Drain: 5 * time.Second},
	}
	for i := range nodes {
		d := f.dog(fmt.Sprintf("n%d", i+1))
		w.Nodes = append(w.Nodes, d)
		w.Ways[d.name], w.Cables[d.name] = wire{f, d.name}, wire{f, d.name}
	}
	w.Producers = []fault.Process{f.dog("p1"), f.dog("p2")}
	return f, w
}

func (f *farm) dog(name string) *dog {
	d := &dog{farm: f, name: name, running: true, pid: 1, ended: make(chan struct{}), since: time.Now()}
	f.nodes[name] = d
	return d
}

func (f *farm) record(s history.Strike) {
	f.mu.Lock()
	f.lines = append(f.lines, s)
	f.mu.Unlock()
	if f.onLine != nil {
		f.onLine(s)
	}
}

// do notes a call; harm is what it does to a thing: 1 breaks it, -1 mends it.
func (f *farm) do(harm int, thing, call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	f.harmed[thing] += harm
	if harm == 0 || f.harmed[thing] == 0 {
		return
	}
	if f.harmed[thing] != 1 {
		f.calls = append(f.calls, fmt.Sprintf("ERROR: %s is harmed %d times", thing, f.harmed[thing]))
	}
}

// Nodes shows the last session of each node, and the one before until it has a
// successor.
func (f *farm) Nodes(context.Context) ([]queue.NodeInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return nil, f.down
	}
	var out []queue.NodeInfo
	for name, d := range f.nodes {
		if !strings.HasPrefix(name, "n") || d.mute {
			continue
		}
		info := func(session string, age time.Duration) queue.NodeInfo {
			return queue.NodeInfo{
				Name: name, Session: session, HeartbeatAge: age, Sweeper: f.sweeper == name,
				Queues: map[string]int{"orders": 1}, Gossip: "here", Members: []string{"n1", "n2"},
			}
		}
		if age := time.Since(d.died); d.dead != "" && age < 3*time.Second {
			out = append(out, info(d.dead, age))
		}
		switch {
		case d.stopped:
			out = append(out, info(d.session(), time.Hour))
		case d.running && !time.Now().Before(d.since):
			out = append(out, info(d.session(), 0))
		}
	}
	return out, nil
}

func (f *farm) HeldBy(_ context.Context, q, session string) iter.Seq2[string, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := slices.Clone(f.holds[session])
	return func(yield func(string, error) bool) {
		for _, id := range ids {
			if owner, _, _ := strings.Cut(id, "/"); owner == q && !yield(strings.TrimPrefix(id, q+"/"), nil) {
				return
			}
		}
	}
}

func (d *dog) session() string { return fmt.Sprintf("%s-%d", d.name, d.pid) }

func (d *dog) Name() string { return d.name }

func (d *dog) Start(context.Context) error {
	d.farm.mu.Lock()
	defer d.farm.mu.Unlock()
	d.farm.calls = append(d.farm.calls, "start "+d.name)
	switch {
	case d.stuck != nil:
		return d.stuck
	case d.running:
		return errors.New(d.name + " runs")
	}
	d.running, d.stopped, d.ended = true, false, make(chan struct{})
	d.pid++
	d.since = time.Now().Add(200 * time.Millisecond)
	return nil
}

func (d *dog) end(call string) {
	d.farm.mu.Lock()
	defer d.farm.mu.Unlock()
	if call != "" {
		d.farm.calls = append(d.farm.calls, call)
	}
	if d.running {
		if !time.Now().Before(d.since) {
			d.dead, d.died = d.session(), time.Now()
		}
		d.running, d.stopped = false, false
		close(d.ended)
	}
}

func (d *dog) Kill() { d.end("kill " + d.name) }

func (d *dog) Term() {
	d.farm.do(0, "", "term "+d.name)
	if !d.stays {
		pid := d.PID()
		time.AfterFunc(time.Second, func() {
			if d.PID() == pid {
				d.end("")
			}
		})
	}
}

func (d *dog) Stop() { d.freeze(true, "stop "+d.name) }
func (d *dog) Cont() { d.freeze(false, "cont "+d.name) }

func (d *dog) freeze(on bool, call string) {
	d.farm.do(0, "", call)
	d.farm.mu.Lock()
	defer d.farm.mu.Unlock()
	d.stopped = on && d.running
}

func (d *dog) Running() bool {
	d.farm.mu.Lock()
	defer d.farm.mu.Unlock()
	return d.running
}

func (d *dog) PID() int {
	d.farm.mu.Lock()
	defer d.farm.mu.Unlock()
	return d.pid
}

func (d *dog) Ended() <-chan struct{} {
	d.farm.mu.Lock()
	defer d.farm.mu.Unlock()
	return d.ended
}

// wire is the way of a node, and its cable.
type wire struct {
	farm *farm
	name string
}

func words(w proxy.Way) string {
	s := strings.TrimSpace(fmt.Sprintf("%s %s %s", map[bool]string{true: "blocked"}[w.Blocked],
		map[bool]string{true: "lost"}[w.Lost], strings.TrimPrefix(w.Delay.String(), "0s")))
	if s == "" {
		return "open"
	}
	return s
}

func (w wire) set(side string, way proxy.Way) {
	harm := 0
	w.farm.mu.Lock()
	was := w.farm.harmed[side+w.name]
	w.farm.mu.Unlock()
	if now := way != (proxy.Way{}); now != (was > 0) {
		harm = 1 - 2*was
	}
	w.farm.do(harm, side+w.name, side+" "+w.name+" "+words(way))
}

func (w wire) SetUp(way proxy.Way)           { w.set("up", way) }
func (w wire) SetDown(way proxy.Way)         { w.set("down", way) }
func (w wire) Cut()                          { w.farm.do(1, "way "+w.name, "cut "+w.name) }
func (w wire) Mend() error                   { w.farm.do(-1, "way "+w.name, "mend "+w.name); return nil }
func (w wire) Unplug() error                 { w.farm.do(1, "cable "+w.name, "unplug "+w.name); return nil }
func (w wire) Plug() error                   { w.farm.do(-1, "cable "+w.name, "plug "+w.name); return nil }
func (w wire) Aim(s proxy.Shot) *proxy.Aimed { panic("single commands are tested with a real proxy") }

// Set is the farm's part as links of gossip.
func (f *farm) Set(from, to string, l herd.Link) error {
	thing, harm := "link "+from+">"+to, 0
	f.mu.Lock()
	was := f.harmed[thing]
	f.mu.Unlock()
	if now := l != (herd.Link{}); now != (was > 0) {
		harm = 1 - 2*was
	}
	what := "clear"
	switch {
	case l.Drop == 1:
		what = "cut"
	case l.Drop > 0:
		what = "lose"
	case l.Duplicate > 0:
		what = "double"
	case l.Jitter > 0:
		what = "delay"
	}
	f.do(harm, thing, what+" "+from+">"+to)
	return nil
}

// store is the Redis of the farm.
type store struct{ farm *farm }

func (s store) set(on bool, what string) error {
	if on {
		s.farm.do(1, "redis "+what, "redis "+what)
	} else {
		s.farm.do(-1, "redis "+what, "redis not "+what)
	}
	return nil
}

func (s store) Kill()                                 { _ = s.set(true, "down") }
func (s store) Restart(context.Context) error         { return s.set(false, "down") }
func (s store) Pause()                                { _ = s.set(true, "paused") }
func (s store) Resume()                               { _ = s.set(false, "paused") }
func (s store) Full(_ context.Context, on bool) error { return s.set(on, "full") }
func (s store) Disk(_ context.Context, on bool) error { return s.set(on, "disk full") }
func (s store) FlushScripts(context.Context) error {
	s.farm.do(0, "", "redis scripts flushed")
	return nil
}
func (s store) Reload(_ context.Context, d time.Duration) error {
	s.farm.do(0, "", "redis loads for "+d.String())
	return nil
}
func (s store) FlushAll(context.Context) error { s.farm.do(0, "", "redis flushed"); return nil }
func (s store) Snapshot(context.Context) error { s.farm.do(0, "", "redis snapshot"); return nil }
func (s store) Rollback(context.Context) error { s.farm.do(0, "", "redis set back"); return nil }
func (s store) failover(context.Context) error { s.farm.do(0, "", "redis failed over"); return nil }

func (s store) Busy(ctx context.Context, d time.Duration) error {
	s.farm.do(0, "", "redis busy "+d.String())
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// phases are those of the lines, in their order; notes are the notes.
func (f *farm) phases() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, s := range f.lines {
		out = append(out, s.Phase)
	}
	return strings.Join(out, " ")
}

func (f *farm) of(phase string) []history.Strike {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []history.Strike
	for _, s := range f.lines {
		if s.Phase == phase {
			out = append(out, s)
		}
	}
	return out
}

func (f *farm) done() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// whole fails t where something is not as it was before all faults.
func (f *farm) whole(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for thing, n := range f.harmed {
		if n != 0 {
			t.Errorf("%s is still harmed (%d)", thing, n)
		}
	}
	for name, d := range f.nodes {
		if !d.running || d.stopped {
			t.Errorf("%s: running %v, stopped %v", name, d.running, d.stopped)
		}
	}
	for _, c := range f.calls {
		if strings.HasPrefix(c, "ERROR") {
			t.Error(c)
		}
	}
}

// noDisk is a Redis whose disk cannot be filled.
type noDisk struct{ store }

func (noDisk) Disk(_ context.Context, on bool) error {
	if on {
		return errors.New("no file system to fill")
	}
	return nil
}
