package node

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestPoolSharesBySeat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		size   int
		strict bool
		queues []Queue
		hungry []string
		want   map[string]int
	}{
		"a queue alone gets all":                         {10, false, []Queue{{"a", 1}, {"b", 3}}, nil, map[string]int{"a": 10, "b": 10}},
		"hungry queues share by weight":                  {12, false, []Queue{{"a", 1}, {"b", 3}}, []string{"a", "b"}, map[string]int{"a": 3, "b": 9}},
		"a queue without work takes no share":            {12, false, []Queue{{"a", 1}, {"b", 3}, {"c", 8}}, []string{"a", "b"}, map[string]int{"a": 3, "b": 9, "c": 8}},
		"a small share is never nothing":                 {10, false, []Queue{{"a", 1}, {"b", 1000}}, []string{"a", "b"}, map[string]int{"a": 1, "b": 10}},
		"strict: the first may have all":                 {10, true, []Queue{{"a", 1}, {"b", 9}}, []string{"a", "b"}, map[string]int{"a": 10, "b": 0}},
		"strict: the second too, once the first is idle": {10, true, []Queue{{"a", 1}, {"b", 9}}, []string{"b"}, map[string]int{"a": 10, "b": 10}},
		"strict: those behind do not count":              {10, true, []Queue{{"a", 1}, {"b", 1}, {"c", 1}}, []string{"c"}, map[string]int{"a": 10, "b": 10, "c": 10}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPool(tt.size, tt.strict, tt.queues)
			for _, q := range tt.hungry {
				p.learn(p.seat(q), true)
			}
			for q, want := range tt.want {
				if got := p.reserve(p.seat(q), 100); got != want {
					t.Errorf("queue %s gets %d slots, want %d", q, got, want)
				} else {
					p.release(p.seat(q), got)
				}
			}
		})
	}
}

func TestPoolLetsOneRiskRunAtATime(t *testing.T) {
	t.Parallel()
	p := newPool(10, false, []Queue{{"a", 1}, {"b", 1}})
	if !p.takeRisk() || p.takeRisk() {
		t.Error("want the right to a risky job given once")
	}
	p.dropRisk()
	if !p.takeRisk() {
		t.Error("want it given again after it was dropped")
	}
}

func TestClosedPoolGivesNothing(t *testing.T) {
	t.Parallel()
	p := newPool(10, false, []Queue{{"a", 1}})
	taken := p.reserve(p.seat("a"), 4)
	p.close()
	if n := p.reserve(p.seat("a"), 1); n != 0 || p.free() != 0 || p.could(p.seat("a")) {
		t.Errorf("a closed pool gave %d slots, has %d free", n, p.free())
	}
	if p.release(p.seat("a"), taken); p.active() != 0 {
		t.Errorf("%d slots used after all were released", p.active())
	}
}

func TestReleasedSlotRingsWhoWaits(t *testing.T) {
	t.Parallel()
	p := newPool(1, false, []Queue{{"a", 1}, {"b", 1}})
	a, b := p.seat("a"), p.seat("b")
	p.learn(b, true)
	p.reserve(a, 1)
	p.release(a, 1)
	for name, bell := range map[string]chan struct{}{"the hungry queue": b.bell, "the wake loop": p.freed} {
		select {
		case <-bell:
		default:
			t.Errorf("%s was not told", name)
		}
	}
}

// Whatever is asked for and given back in whatever order: never more slots than
// there are, none left free that a hungry queue could have, and the books close.
func TestPoolNeverGivesMoreThanItHasAndLeavesNoneIdle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size, strict := rapid.IntRange(1, 40).Draw(t, "size"), rapid.Bool().Draw(t, "strict")
		var queues []Queue
		for i := range rapid.IntRange(1, 5).Draw(t, "queues") {
			queues = append(queues, Queue{fmt.Sprintf("q%d", i), rapid.IntRange(1, 1000).Draw(t, "weight")})
		}
		p := newPool(size, strict, queues)
		held := make([]int, len(queues))
		sum := func() (n int) {
			for _, h := range held {
				n += h
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				i := rapid.IntRange(0, len(queues)-1).Draw(t, "queue")
				held[i] += p.reserve(p.seats[i], rapid.IntRange(0, 50).Draw(t, "most"))
			},
			"release": func(t *rapid.T) {
				i := rapid.IntRange(0, len(queues)-1).Draw(t, "queue")
				n := rapid.IntRange(0, held[i]).Draw(t, "n")
				p.release(p.seats[i], n)
				held[i] -= n
			},
			"learn": func(t *rapid.T) {
				i := rapid.IntRange(0, len(queues)-1).Draw(t, "queue")
				p.learn(p.seats[i], rapid.Bool().Draw(t, "hungry"))
			},
			"all hungry queues take what they can": func(t *rapid.T) {
				hungry := false
				for i, s := range p.seats {
					if s.hungry {
						held[i] += p.reserve(s, size)
						hungry = true
					}
				}
				if hungry && p.free() > 0 {
					t.Fatalf("%d slots stay free although queues have work: held %v", p.free(), held)
				}
			},
			"": func(t *rapid.T) {
				if n := sum(); n > size || n != p.active() || p.free() != size-n {
					t.Fatalf("%d slots given of %d, the pool says %d used, %d free", n, size, p.active(), p.free())
				}
			},
		})
	})
}

// More hungry queues than slots: they take turns by weight, whoever is quickest.
func TestQueuesTakeTurnsWhereSlotsAreFew(t *testing.T) {
	t.Parallel()
	p := newPool(1, false, []Queue{{"quick", 1}, {"slow", 1}, {"heavy", 2}})
	got := map[string]int{}
	for _, s := range p.seats {
		p.learn(s, true)
	}
	for range 400 {
		for _, s := range p.seats { // "quick" always asks first
			if n := p.reserve(s, 10); n > 0 {
				got[s.queue] += n
				p.answer(s, 0, true)
				p.release(s, n)
				break
			}
		}
	}
	if got["quick"] < 99 || got["quick"] > 101 || got["slow"] < 99 || got["slow"] > 101 || got["heavy"] < 199 || got["heavy"] > 201 {
		t.Errorf("slots given: %v, want 100, 100 and 200", got)
	}
}
