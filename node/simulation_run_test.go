package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// settleBound is the virtual time after the last fault within which all jobs
// must have ended.
const settleBound = 90 * time.Second

// run is the life of one seed.
type run struct {
	*world
	places []*process // who runs in the place of each node
	starts int        // of processes
	done   []*process

	producer *queue.Client
	offers   []offer

	work   sync.Mutex       // guards all below
	begun  []int            // handlers by task
	ended  map[int64]string // fence -> how its handler ended
	claims map[int64]int    // fence -> task, of handlers that ran
}

// offer is what a producer was told of a task.
type offer struct {
	id  string
	err error
}

// process is a node from start to end.
type process struct {
	a     *actor
	n     *Node
	stop  context.CancelFunc
	abort chan struct{}
	ended chan error

	mu      sync.Mutex
	running int // handlers
}

// report is what became of a seed.
type report struct {
	wrong []string
	trace string
	calls int
	met   map[string]int
	lived time.Duration // virtual
	log   string        // the queue's, for comparison
}

// simulate lives one seed in a bubble.
func simulate(t *testing.T, seed uint64, bad plant) (out report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlan(seed, bad.rough)
		r := &run{
			world: newWorld(p, bad), places: make([]*process, p.nodes), begun: make([]int, len(p.tasks)),
			offers: make([]offer, len(p.tasks)), ended: map[int64]string{}, claims: map[int64]int{},
		}
		out = r.live(t)
	})
	return out
}

func (r *run) live(t *testing.T) report {
	for i := range r.places {
		r.start(t, i)
	}
	produced := make(chan struct{})
	go func() { defer close(produced); r.produce(t) }()
	over := make(chan struct{})
	struck := make(chan struct{})
	go func() { defer close(struck); r.strike(t, over) }()
	settled := r.settle(produced, struck, over)
	<-struck
	<-produced
	close(r.hurry) // what is on its way arrives
	r.pass(time.Millisecond)
	if settled {
		settled = r.await(time.Now().Add(settleBound))
	}
	if !settled {
		r.complain("settled: not all jobs have ended %v after the last fault", settleBound)
	}
	lived := time.Since(r.began)
	r.end(t)
	log := r.judge(t, settled)
	r.redis.Close()
	r.pass(5 * time.Second) // go-redis notices closed pools so late
	return report{wrong: r.wrong, trace: r.traceText() + log, calls: r.calls, met: r.met, lived: lived, log: log}
}

// settle waits until all has ended; events that have not struck by then do not.
func (r *run) settle(produced, struck <-chan struct{}, over chan<- struct{}) bool {
	<-produced
	for !r.empty() {
		select {
		case <-struck:
			close(over)
			return r.await(time.Now().Add(settleBound))
		default:
			r.pass(20 * time.Millisecond)
		}
	}
	close(over)
	return true
}

func (r *run) await(until time.Time) bool {
	for !r.empty() {
		if time.Now().After(until) {
			return false
		}
		r.pass(20 * time.Millisecond)
	}
	return true
}

func (r *run) pass(d time.Duration) { <-time.After(d) }

// empty reports, in one step of Redis, that no job has still to end.
func (r *run) empty() bool {
	l := newLine()
	key := "kelpie:{default}:"
	r.redis.Server().Dispatch(l.peer, []string{"EXISTS", key + "waiting", key + "delayed", key + "active"})
	l.peer.Flush()
	return l.out.String() == ":0\r\n"
}

// start runs a new process in the place of a node.
func (r *run) start(t *testing.T, i int) {
	r.starts++
	p := &process{a: r.actor(fmt.Sprintf("n%d.%d", i+1, r.starts)), abort: make(chan struct{}), ended: make(chan error, 1)}
	var err error
	p.n, err = New(Config{
		Redis: "redis://simulation:6379", Name: fmt.Sprintf("n%d", i+1), Workers: r.plan.workers, Gossip: gossipOff,
		Heartbeat: 500 * time.Millisecond, Silence: time.Second, Lease: 3 * time.Second, DrainTimeout: 500 * time.Millisecond,
		AllowEviction: true, Abort: p.abort, redis: p.a.tune, witness: p.a,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.n.handle("k", func(ctx context.Context, c *queue.Claim) error { return r.handle(ctx, p, c) })
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() { p.ended <- p.n.Run(ctx) }()
	r.places[i] = p
	r.note("%s starts", p.a.name)
}

// crash ends a process without a farewell; its goroutines come to their end in
// a world of their own.
func (r *run) crash(p *process) {
	p.a.kill()
	close(p.abort)
	p.stop()
	r.done = append(r.done, p)
	r.note("%s crashes", p.a.name)
}

// strike makes the events happen, and heals all at the end.
func (r *run) strike(t *testing.T, over <-chan struct{}) {
	type deed struct {
		at time.Duration
		do func()
	}
	var deeds []deed
	for _, e := range r.plan.events {
		deeds = append(deeds, deed{e.at, func() { r.begin(e) }}, deed{min(e.at+e.lasts, r.plan.heal), func() { r.finish(t, e) }})
	}
	slices.SortStableFunc(deeds, func(a, b deed) int { return int(a.at - b.at) })
	for _, d := range deeds {
		if !r.sleepUntil(d.at, over) {
			break
		}
		d.do()
	}
	r.sleepUntil(r.plan.heal, over)
	r.outage(false)
	r.world.mu.Lock()
	r.calm = true
	all := r.all
	r.world.mu.Unlock()
	for _, a := range all {
		a.resume()
	}
	for i, p := range r.places {
		if p == nil {
			r.start(t, i)
		}
	}
	r.note("all faults are over")
}

func (r *run) sleepUntil(at time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(at - time.Since(r.began))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-over:
		return false
	}
}

func (r *run) begin(e event) {
	p := r.places[e.node]
	switch {
	case e.kind == "outage":
		r.note("Redis goes away")
		r.outage(true)
	case e.kind == "flush":
		r.flush()
	case p == nil:
	case e.kind == "crash":
		r.crash(p)
		r.places[e.node] = nil
	case e.kind == "stop":
		r.note("%s is told to stop", p.a.name)
		p.stop()
		r.done = append(r.done, p)
		r.places[e.node] = nil
	case e.kind == "pause":
		r.note("%s stands still", p.a.name)
		p.a.pause()
	case e.kind == "heart":
		r.note("the beats of %s are lost", p.a.name)
		p.a.loseBeats(true)
	}
}

func (r *run) finish(t *testing.T, e event) {
	p := r.places[e.node]
	switch {
	case e.kind == "outage":
		r.note("Redis is back")
		r.outage(false)
	case p == nil && (e.kind == "crash" || e.kind == "stop"):
		r.start(t, e.node)
	case p != nil && e.kind == "pause":
		r.note("%s goes on", p.a.name)
		p.a.resume()
	case p != nil && e.kind == "heart":
		p.a.loseBeats(false)
	}
}

// end stops what still runs, politely or not, and waits for all processes.
func (r *run) end(t *testing.T) {
	for i, p := range r.places {
		if r.plan.polite {
			p.stop()
			r.done = append(r.done, p)
		} else {
			r.crash(p)
		}
		r.places[i] = nil
	}
	for _, p := range r.done {
		if err := <-p.ended; err != nil && !errors.Is(err, ErrAborted) && !p.a.dead && r.plan.polite {
			r.complain("%s ended with: %v", p.a.name, err)
		}
	}
	_ = r.producer.Close()
	r.flying.Wait()
}

// handle is the handler of every task.
func (r *run) handle(ctx context.Context, p *process, c *queue.Claim) error {
	n, err := strconv.Atoi(string(c.Payload))
	if err != nil {
		r.complain("job %s has the payload %q", c.ID, c.Payload)
	}
	p.enter(r, 1)
	defer p.enter(r, -1)
	r.work.Lock()
	if _, twice := r.claims[c.Fence]; twice {
		r.complain("two handlers were started for fence %d of job %d", c.Fence, n)
	}
	r.claims[c.Fence] = n
	a := act{takes: time.Millisecond, end: "ok"}
	if k := r.begun[n]; k < len(r.plan.tasks[n].acts) {
		a = r.plan.tasks[n].acts[k]
	}
	r.begun[n]++
	r.work.Unlock()
	stopped := !sleep(ctx, a.takes)
	if stopped && a.deaf {
		r.pass(a.takes)
		stopped = false
	}
	p.a.awake()
	if stopped {
		return context.Cause(ctx)
	}
	r.work.Lock()
	r.ended[c.Fence] = a.end
	r.work.Unlock()
	switch a.end {
	case "fail":
		return queue.RetryIn(300*time.Millisecond, errors.New("planned"))
	case "panic":
		panic("planned")
	case "snooze":
		return queue.Snooze(200 * time.Millisecond)
	case "discard":
		return queue.Discard(errors.New("planned"))
	}
	return nil
}

// enter counts the handlers of a process.
func (p *process) enter(r *run, n int) {
	p.mu.Lock()
	p.running += n
	running := p.running
	p.mu.Unlock()
	if running > r.plan.workers {
		r.complain("%s runs %d handlers with %d workers", p.a.name, running, r.plan.workers)
	}
}

// produce enqueues the tasks, each when its time has come.
func (r *run) produce(t *testing.T) {
	a := r.actor("client")
	rdb, space := r.client(t, a)
	r.producer = space
	var all sync.WaitGroup
	for i, task := range r.plan.tasks {
		all.Go(func() {
			r.pass(task.at)
			q := queue.Request{Kind: "k", Payload: []byte(strconv.Itoa(i)), JobOptions: queue.JobOptions{
				Delay: task.delay, MaxAttempts: task.max, Backoff: queue.Backoff{Base: 200 * time.Millisecond},
			}}
			if task.chosen {
				q.ID = fmt.Sprintf("job-%d", i)
			}
			r.offers[i].id, r.offers[i].err = space.Enqueue(context.Background(), q)
		})
	}
	all.Wait()
	_ = space.Close()
	_ = rdb.Close()
}
