package traffic

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/work"
	"github.com/kelpiehq/kelpie/queue"
)

// Verbs and ways of an item, as in history.Op.
const (
	Enqueue    = "enqueue"
	Reschedule = "reschedule"
	Revive     = "revive"

	ByLibrary = "library"
	ByCLI     = "cli"
)

// Item is one planned change of one job.
type Item struct {
	N        int           // its place in the plan, from 1
	Producer int           // whose it is, from 1
	At       time.Duration // after the run's Begin
	Verb     string        // Enqueue, Reschedule or Revive
	By       string        // ByLibrary or ByCLI
	Group    int           // enqueue: items of one group go in one call; 0: alone
	Of       int           // reschedule and revive: N of the enqueue
	GiveUp   time.Duration // the first call's context lasts so long; 0: without end

	Queue     string
	ID        string        // where it is chosen
	Delay     time.Duration // of enqueue and reschedule
	Due       time.Duration // enqueue: due so long after Begin; not with Delay
	Priority  int
	Max       int           // attempts
	Timeout   time.Duration // 0: the default
	Retention time.Duration
	Backoff   queue.Backoff
	Task      work.Task // its Op is set at each call
}

// Backoff of planned jobs: short, so that a run comes to its end.
var quick = queue.Backoff{Base: 100 * time.Millisecond, Max: time.Second}

// What the settings do not say.
const (
	overrunTimeout = 200 * time.Millisecond // of an attempt that runs into it
	longestGiveUp  = 2 * time.Millisecond   // about as long as a call takes
	longestPad     = 8 << 10                // bytes
	padded, kept   = 5, 20                  // shares of large payloads, and of jobs with a retention
	retention      = time.Hour              // of those: longer than a run
	togetherGroup  = 500                    // jobs in one call of Work.Together
	largestGroup   = 20                     // jobs in one call otherwise
	most           = 3                      // attempts, as by default
)

// Plan returns what the producers of a run are to do, in the order of time. It
// depends on nothing but its arguments.
func Plan(seed uint64, s history.Settings) []Item {
	p := &planner{s: s, w: s.Work, rand: rand.New(rand.NewPCG(seed, seed^0x6b656c706965)), open: map[string]*group{}}
	if len(s.Queues) == 0 {
		p.s.Queues = []string{queue.DefaultQueue}
	}
	p.w.Producers, p.w.Longest = max(p.w.Producers, 1), max(p.w.Longest, p.w.Shortest)
	for i := range s.Jobs {
		p.job(i)
	}
	for _, g := range p.open {
		g.close()
	}
	return p.numbered()
}

// planner collects items; a follower knows its enqueue by pointer until all have
// their number.
type planner struct {
	s      history.Settings
	w      history.Work
	rand   *rand.Rand
	items  []*draft
	groups int
	open   map[string]*group // by producer and way
}

// draft is an item, and whose follower it is.
type draft struct {
	Item
	of *draft
}

// group collects items for one call.
type group struct {
	n, size int
	items   []*draft
}

// share draws whether something holds, with so many chances out of a thousand.
func (p *planner) share(of int) bool { return p.rand.IntN(1000) < of }

// between draws from a to b, both included.
func (p *planner) between(a, b time.Duration) time.Duration {
	return a + time.Duration(p.rand.Int64N(int64(b-a)+1))
}

// job draws the i-th job.
func (p *planner) job(i int) {
	slot := p.s.Duration / time.Duration(p.s.Jobs)
	d := &draft{Item: Item{
		Producer: i%p.w.Producers + 1, At: time.Duration(i)*slot + p.between(0, slot), Verb: Enqueue, By: ByLibrary,
		Queue: p.s.Queues[p.rand.IntN(len(p.s.Queues))], Priority: p.rand.IntN(10), Max: most, Backoff: quick,
	}}
	d.Task.Run = p.between(p.w.Shortest, p.w.Longest)
	if p.share(p.w.Chosen) {
		d.ID = fmt.Sprintf("chosen-%d", i+1)
	}
	if p.share(kept) {
		d.Retention = retention
	}
	if p.share(padded) {
		d.Task.Pad = strings.Repeat("k", 1+p.rand.IntN(longestPad))
	}
	moved, later := p.share(p.w.Moved), p.share(p.w.Delayed)
	switch {
	case later && p.w.Together:
		d.At, d.Due = 0, p.w.Later
	case moved || later:
		d.Delay = p.between(min(100*time.Millisecond, p.w.Later), p.w.Later)
	}
	revived := p.behave(d)
	twin := p.share(p.w.Twins) && !moved && !revived && d.Due == 0
	if twin {
		p.twin(d, i)
	} else {
		p.way(d)
	}
	p.items = append(p.items, d)
	if moved && d.Due == 0 {
		p.follow(d, Reschedule, p.between(d.Delay/5, d.Delay*4/5))
	}
	if revived {
		p.follow(d, Revive, d.Delay+time.Duration(d.Max)*(d.Task.Run+quick.Delay(d.Max))+p.between(time.Second, 3*time.Second))
	}
}

// behave draws what the handler does; true if the job is to be revived.
func (p *planner) behave(d *draft) (revived bool) {
	r := p.rand.IntN(1000)
	is := func(share int) bool { r -= share; return r < 0 }
	t := &d.Task
	switch {
	case is(p.w.Failing):
		k := 1 + p.rand.IntN(2)
		t.Acts, d.Max = append(slices.Repeat([]work.Act{work.Fail}, k), work.OK), k+2
	case is(p.w.Panicking):
		t.Acts = []work.Act{work.Panic, work.OK}
	case is(p.w.Snoozing):
		t.Acts, t.Nap = []work.Act{work.Snooze}, p.between(50*time.Millisecond, 500*time.Millisecond)
	case is(p.w.Dropping):
		t.Acts = []work.Act{work.Discard}
	case is(p.w.Doomed):
		t.Acts, d.Max = []work.Act{work.Fail}, 2
	case is(p.w.Deaf):
		t.Acts = []work.Act{work.Deaf}
	case is(p.w.Parents):
		t.Acts, t.Children = []work.Act{work.Child}, 1+p.rand.IntN(3)
	case is(p.w.Overrun):
		t.Acts, d.Timeout = []work.Act{work.Overrun, work.OK}, overrunTimeout+p.w.Longest
	case is(p.w.Revived):
		t.Acts, d.Max = []work.Act{work.Fail}, 1+p.rand.IntN(2)
		return true
	}
	return false
}

// twin adds the same job once more, in the same call. One of the two must be
// refused.
func (p *planner) twin(d *draft, i int) {
	p.groups++
	d.ID, d.Group = fmt.Sprintf("chosen-%d", i+1), p.groups
	p.items = append(p.items, &draft{Item: d.Item})
}

// way draws how the job is enqueued.
func (p *planner) way(d *draft) {
	r := p.rand.IntN(1000)
	is := func(share int) bool { r -= share; return r < 0 }
	switch {
	case d.Due > 0:
		p.join(d, "together", func() int { return togetherGroup })
	case is(p.w.CLI):
		d.By, d.Backoff = ByCLI, queue.Backoff{} // no flag sets it
		p.join(d, ByCLI, func() int { return max(1, p.rand.IntN(2*largestGroup)-largestGroup) })
	case is(p.w.Batched):
		p.join(d, ByLibrary, func() int { return 2 + p.rand.IntN(largestGroup-1) })
	case is(p.w.Impatient):
		d.GiveUp = p.between(longestGiveUp/20, longestGiveUp)
	}
}

// join puts an item into the group that its producer fills at that time.
func (p *planner) join(d *draft, way string, size func() int) {
	key := fmt.Sprintf("%d %s", d.Producer, way)
	g := p.open[key]
	if g == nil {
		p.groups++
		g = &group{n: p.groups, size: size()}
		p.open[key] = g
	}
	if g.items = append(g.items, d); len(g.items) == g.size {
		g.close()
		delete(p.open, key)
	}
}

// close gives all of a group its number and the time of its last item.
func (g *group) close() {
	last := g.items[len(g.items)-1]
	for _, d := range g.items {
		d.At, d.Group = last.At, g.n
	}
}

// follow plans another change of a job, so long after its enqueue.
func (p *planner) follow(d *draft, verb string, after time.Duration) {
	f := &draft{of: d, Item: Item{
		Producer: d.Producer, At: after, Verb: verb, By: ByLibrary, Queue: d.Queue, Priority: d.Priority, Max: d.Max,
	}}
	if verb == Reschedule {
		f.Delay = p.between(0, p.w.Later)
	}
	p.items = append(p.items, f)
}

// numbered puts the items in order.
func (p *planner) numbered() []Item {
	for _, d := range p.items {
		if d.of != nil {
			d.At += d.of.At // groups may have moved it
		}
	}
	slices.SortStableFunc(p.items, func(a, b *draft) int { return cmp.Compare(a.At, b.At) })
	for i, d := range p.items {
		d.N = i + 1
	}
	out := make([]Item, len(p.items))
	for i, d := range p.items {
		if d.of != nil {
			d.Of = d.of.N
		}
		out[i] = d.Item
	}
	return out
}
