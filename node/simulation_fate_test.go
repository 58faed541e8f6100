package node

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// destiny is what becomes of a call.
type destiny int

const (
	fine  destiny = iota
	slow          // it takes its time, both ways
	lost          // it never arrives, and nobody says so
	mute          // it is done, and the connection breaks before the answer
	late          // the connection breaks at once, and the call arrives much later
	twice         // it is done, and a copy of it arrives much later
)

var destinies = []string{"", "slow", "lost", "answer lost", "late", "copied"}

func (d destiny) String() string { return destinies[d] }

// fate is a drawn destiny with its times.
type fate struct {
	what          destiny
	before, after time.Duration // before it is done, and until its answer is there
	again         time.Duration // until its copy arrives, counted from there
}

// weather is how likely each destiny is in the life of a seed. Some kinds are
// missing in most seeds, so that the others meet calls that went well.
type weather [twice + 1]float64

func newWeather(r *rand.Rand) (w weather) {
	for d := slow; d <= twice; d++ {
		if rate := []float64{0, 0, 0.02, 0.06, 0.15}[r.IntN(5)]; rate > 0 {
			w[d] = rate
		}
	}
	return w
}

// draw is the fate of the next call of a stream; it always takes as many numbers.
// share is how often it is hit by the weather at all.
func (w weather) draw(r *rand.Rand, share float64) fate {
	p, before, after, again := r.Float64(), r.Float64(), r.Float64(), r.Float64()
	f := fate{before: soon(before), after: soon(after), again: later(again)}
	for d := slow; d <= twice; d++ {
		if p -= w[d] * share; p < 0 {
			f.what = d
			break
		}
	}
	switch f.what {
	case slow:
		f.before, f.after = later(before)/2, later(after)/2
	case late:
		f.before = later(before)
	}
	return f
}

// soon is the way of a call that goes well.
func soon(p float64) time.Duration { return time.Duration(50+p*p*3000) * time.Microsecond }

// later is 2 ms to 10 s; as often below 140 ms as above.
func later(p float64) time.Duration {
	return time.Duration(2*math.Pow(5000, p)*1000) * time.Microsecond
}

// stream makes a source of numbers that depends on nothing but the seed and its
// name, so that what one actor does shifts no number of another.
func stream(seed uint64, name string, more ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, name, more)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// act is what a handler does in one attempt.
type act struct {
	takes time.Duration
	deaf  bool   // it goes on after its context has ended
	end   string // ok, fail, panic, snooze, discard
}

// task is a planned job.
type task struct {
	at     time.Duration // when it is enqueued
	delay  time.Duration
	max    int
	chosen bool
	acts   []act // one for each start; after the last one all goes well
}

// event is a fault of a whole process, or of Redis.
type event struct {
	at, lasts time.Duration
	kind      string // crash, stop, pause, heart (its beats are lost), outage, flush
	node      int
}

// plan is all that a seed decides.
type plan struct {
	seed    uint64
	nodes   int
	workers int
	lies    float64 // how often a witness calls a silent session dead
	tasks   []task
	events  []event
	heal    time.Duration // no fault begins later
	weather weather
	polite  bool // the nodes drain at the end
}

// newPlan draws a plan. Every other seed has a rough one.
func newPlan(seed uint64, rough bool) *plan {
	r := stream(seed, "plan")
	p := &plan{
		seed: seed, nodes: 2 + r.IntN(4)/3, workers: 1 + r.IntN(3), lies: []float64{0, 0.5, 1, 1}[r.IntN(4)],
		heal: time.Duration(2000+r.IntN(4000)) * time.Millisecond, weather: newWeather(r), polite: r.IntN(4) == 0,
	}
	for range 4 + r.IntN(5) {
		t := task{at: time.Duration(r.IntN(1500)) * time.Millisecond, max: 1 + r.IntN(4), chosen: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			t.delay = time.Duration(1+r.IntN(2500)) * time.Millisecond
		}
		for range r.IntN(4) {
			t.acts = append(t.acts, act{
				takes: later(r.Float64()) / 3, deaf: r.IntN(3) == 0,
				end: []string{"ok", "ok", "ok", "fail", "panic", "snooze", "discard"}[r.IntN(7)],
			})
		}
		p.tasks = append(p.tasks, t)
	}
	kinds := []string{"crash", "stop", "pause", "pause", "heart", "heart", "heart", "outage", "flush"}
	for range r.IntN(5) {
		p.events = append(p.events, event{
			at: time.Duration(r.IntN(int(p.heal/time.Millisecond))) * time.Millisecond, lasts: later(0.4 + 0.6*r.Float64()),
			kind: kinds[r.IntN(len(kinds))], node: r.IntN(p.nodes),
		})
	}
	if rough || seed%2 == 1 {
		p.roughen()
	}
	return p
}

// roughen makes a plan that tests every protection: sessions are condemned while
// they work, jobs come all the time, and every kind of fate is met often.
func (p *plan) roughen() {
	r := stream(p.seed, "rough")
	p.weather = weather{slow: 0.1, lost: 0.03, mute: 0.08, late: 0.2, twice: 0.15}
	p.lies, p.heal = 1, 7*time.Second
	p.tasks = append(p.tasks, p.tasks...)
	for i := range p.tasks {
		p.tasks[i].at = time.Duration(r.IntN(int(p.heal/time.Millisecond))) * time.Millisecond
	}
	for at := 500 * time.Millisecond; at < p.heal; at += 1200 * time.Millisecond {
		p.events = append(p.events, event{
			at: at, lasts: time.Duration(1000+r.IntN(1500)) * time.Millisecond, kind: "heart", node: r.IntN(p.nodes),
		})
	}
}
