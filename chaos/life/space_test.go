package life

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// us is when the steps of these tests happen, if they do not say.
const us = 1_700_000_000_000_000

// step is a step of queue q by session n1.
func step(script string, moves ...history.Move) history.Step {
	s := history.Step{Queue: "q", US: us, Script: script, Moves: moves}
	switch script {
	case "exchange":
		s.Who = "n1"
	case "enqueue", "revive", "reschedule":
		s.Who = "c"
	default:
		s.Epoch = 7
	}
	return s
}

// play numbers the steps of each queue and applies them.
func play(steps ...history.Step) (s *Space, rules []string) {
	s = New(3)
	index := map[string]int64{}
	for i, st := range steps {
		if st.Back {
			index[st.Queue] = st.Index
		} else {
			st.Index = index[st.Queue]
			index[st.Queue]++
		}
		if st.Who != "" && st.Turn == 0 {
			st.Turn = int64(i + 1)
		}
		for _, v := range s.Apply(st) {
			rules = append(rules, v.Rule)
		}
	}
	return s, rules
}

var (
	stored = step("enqueue", history.Move{What: history.Store, ID: "x", To: Waiting, Max: 2})
	joined = step("exchange", history.Move{What: history.Join, ID: "n1"})
	taken  = step("exchange", history.Move{What: history.Claim, ID: "x", Fence: 5, Session: "n1"})
	late   = step("enqueue", history.Move{What: history.Store, ID: "x", To: Delayed, Due: us/1000 + 50, Max: 2})
)

func settled(verb, to string, spent int, due, until int64) history.Step {
	return step("exchange", history.Move{What: history.Settle, ID: "x", To: to, Fence: 5, Session: "n1", Verb: verb, Spent: spent, Due: due, Until: until})
}

func reclaimed(to string, spent int, due int64) history.Step {
	return step("reclaim", history.Move{What: history.Gone, ID: "n1"},
		history.Move{What: history.Reclaim, ID: "x", To: to, Fence: 5, Session: "n1", Spent: spent, Due: due})
}

func with(s history.Step, change func(*history.Step)) history.Step {
	s.Moves = append([]history.Move(nil), s.Moves...)
	change(&s)
	return s
}

func TestMovesThatNoQueueMakesAreTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps []history.Step
		want  []string
	}{
		"a life from enqueue to completion is right": {[]history.Step{joined, stored, taken, settled("C", Completed, 0, 0, 0)}, nil},
		"a job fails and waits for the next attempt": {[]history.Step{stored, taken, settled("R", Delayed, 1, us/1000+5, 0)}, nil},
		"the last failure goes to dead, not to the next attempt": {
			[]history.Step{with(stored, func(s *history.Step) { s.Moves[0].Max = 1 }), taken, settled("R", Delayed, 1, us/1000+5, 0)}, []string{Attempts}},
		"a discard is dead before all is spent":           {[]history.Step{stored, taken, settled("D", Dead, 1, 0, 0)}, nil},
		"a cancelled job spends what it likes":            {[]history.Step{stored, taken, settled("X", Cancelled, 1, 0, 0)}, nil},
		"a verb leads to its place only":                  {[]history.Step{stored, taken, settled("C", Dead, 0, 0, 0)}, []string{Place}},
		"a snooze that spends":                            {[]history.Step{stored, taken, settled("S", Delayed, 1, us/1000+5, 0)}, []string{Attempts}},
		"a hand-back that spends":                         {[]history.Step{stored, taken, settled("L", Waiting, 1, 0, 0)}, []string{Graceful}},
		"the first stall goes to the head of its class":   {[]history.Step{stored, taken, reclaimed(Waiting, 1, 0)}, nil},
		"the first stall does not wait":                   {[]history.Step{stored, taken, reclaimed(Delayed, 1, us/1000+1000)}, []string{Place}},
		"a stall that is not counted":                     {[]history.Step{stored, taken, reclaimed(Waiting, 0, 0)}, []string{Attempts}},
		"a claim before the due time":                     {[]history.Step{late, taken}, []string{Early}},
		"a job that is stored as waiting before its time": {[]history.Step{with(late, func(s *history.Step) { s.Moves[0].To = Waiting })}, []string{Early}},
		"a promotion in time": {[]history.Step{late, with(step("promote", history.Move{What: history.Promote, ID: "x", Due: us/1000 + 50}),
			func(s *history.Step) { s.US += 50_000 })}, nil},
		"a promotion 1 ms early": {[]history.Step{late, with(step("promote", history.Move{What: history.Promote, ID: "x", Due: us/1000 + 50}),
			func(s *history.Step) { s.US += 49_999 })}, []string{Early}},
		"a promotion with another due time": {[]history.Step{late, with(step("promote", history.Move{What: history.Promote, ID: "x", Due: us/1000 + 40}),
			func(s *history.Step) { s.US += 60_000 })}, []string{Early}},
		"a fence that does not rise": {[]history.Step{stored, taken, settled("L", Waiting, 0, 0, 0), taken}, []string{Settlement}},
		"a job that nobody enqueued": {[]history.Step{taken}, []string{Phantom}},
		"a job is put aside with one stall only": {
			[]history.Step{stored, step("exchange", history.Move{What: history.Later, ID: "x", Due: us/1000 + 1000})}, []string{Place}},
		"a job that has attempts left goes to dead": {[]history.Step{stored, step("exchange", history.Move{What: history.SpentOut, ID: "x"})}, []string{Attempts}},
		"an id is refused that is known":            {[]history.Step{stored, step("enqueue", history.Move{What: history.Exists, ID: "x"})}, nil},
		"an id is refused that is not known":        {[]history.Step{step("enqueue", history.Move{What: history.Exists, ID: "x"})}, []string{Place}},
		"a kept job is forgotten before its time": {[]history.Step{stored, taken, settled("C", Completed, 0, 0, us/1000+100),
			step("trim", history.Move{What: history.Forget, ID: "x", From: Completed})}, []string{Final}},
		"a kept job is forgotten in its time, and its id is free": {[]history.Step{stored, taken, settled("C", Completed, 0, 0, us/1000+100),
			with(step("trim", history.Move{What: history.Forget, ID: "x", From: Completed}), func(s *history.Step) { s.US += 100_000 }), stored}, nil},
		"a job is forgotten while it waits": {[]history.Step{stored, step("trim", history.Move{What: history.Forget, ID: "x", From: Completed})}, []string{Place}},
		"a dead job is dropped and stays known": {[]history.Step{stored, taken, settled("D", Dead, 1, 0, 0),
			step("trim", history.Move{What: history.Drop, ID: "x", From: Dead, To: Completed, Until: us/1000 + 9}), step("enqueue", history.Move{What: history.Exists, ID: "x"})}, nil},
		"four claims in a call for three workers": {[]history.Step{
			step("enqueue", history.Move{What: history.Store, ID: "1", To: Waiting}, history.Move{What: history.Store, ID: "2", To: Waiting},
				history.Move{What: history.Store, ID: "3", To: Waiting}, history.Move{What: history.Store, ID: "4", To: Waiting}),
			step("exchange", history.Move{What: history.Claim, ID: "1", Fence: 1, Session: "n1"}, history.Move{What: history.Claim, ID: "2", Fence: 2, Session: "n1"},
				history.Move{What: history.Claim, ID: "3", Fence: 3, Session: "n1"}, history.Move{What: history.Claim, ID: "4", Fence: 4, Session: "n1"})}, []string{Slots}},
		"a revival that keeps the attempts": {[]history.Step{stored, taken, settled("D", Dead, 1, 0, 0),
			step("revive", history.Move{What: history.Revive, ID: "x", Spent: 1})}, []string{Attempts}},
		"a repair":                         {[]history.Step{stored, step("repair", history.Move{What: history.Orphan, ID: "x", From: Waiting})}, []string{Repair}},
		"a refusal of the current attempt": {[]history.Step{stored, taken, step("exchange", history.Move{What: history.Stale, ID: "x", Fence: 5, Session: "n1", Verb: "C", Again: true})}, []string{Settlement}},
		"a refusal of an earlier attempt":  {[]history.Step{stored, taken, step("exchange", history.Move{What: history.Stale, ID: "x", Fence: 4, Session: "n1", Verb: "C"})}, nil},
		"an older epoch":                   {[]history.Step{step("trim"), with(step("trim"), func(s *history.Step) { s.Epoch = 6 })}, []string{Epoch}},
		"the same turn twice":              {[]history.Step{with(stored, func(s *history.Step) { s.Turn = 9 }), with(taken, func(s *history.Step) { s.Turn = 9 }), with(settled("C", Completed, 0, 0, 0), func(s *history.Step) { s.Turn = 9 })}, []string{Turns}},
		"a gone session settles what it has, by any turn": {[]history.Step{stored, with(taken, func(s *history.Step) { s.Turn = 50 }), step("reclaim", history.Move{What: history.Gone, ID: "n1"}),
			with(settled("C", Completed, 0, 0, 0), func(s *history.Step) { s.Turn = 50 })}, nil},
		"a session is condemned twice": {[]history.Step{{Queue: Cluster, US: us, Script: "condemn", Moves: []history.Move{{What: history.Condemn, ID: "n1"}}},
			{Queue: Cluster, US: us, Script: "beat", Moves: []history.Move{{What: history.Bye, ID: "n1"}}}}, []string{Condemned}},
		"an epoch is raised twice": {[]history.Step{{Queue: Cluster, US: us, Script: "raise", Epoch: 4, Moves: []history.Move{{What: history.Raise, ID: "n1"}}},
			{Queue: Cluster, US: us, Script: "raise", Epoch: 4, Moves: []history.Move{{What: history.Raise, ID: "n2"}}}}, []string{Epoch}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, got := play(c.steps...); !reflect.DeepEqual(got, c.want) {
				t.Errorf("it breaks %v, not %v", got, c.want)
			}
		})
	}
}

func TestALogWithAHoleIsTold(t *testing.T) {
	t.Parallel()
	s := New(0)
	first := s.Apply(history.Step{Queue: "q", Index: 1, Script: "enqueue", US: us})
	if len(first) != 1 || first[0].Rule != Hole {
		t.Errorf("the first entry is number 1: %v", first)
	}
	if next := s.Apply(history.Step{Queue: "q", Index: 2, Script: "enqueue", US: us}); len(next) != 0 {
		t.Errorf("one hole is told twice: %v", next)
	}
	if far := s.Apply(history.Step{Queue: "q", Index: 9, Back: true}); len(far) != 1 || far[0].Rule != Hole {
		t.Errorf("Redis cannot lose what it never had: %v", far)
	}
}

func TestAnEmptiedQueueTakesJobsAsItSeesThem(t *testing.T) {
	t.Parallel()
	s, rules := play(stored, history.Step{Queue: "q", Back: true}, taken, settled("R", Delayed, 1, us/1000+5, 0))
	if len(rules) > 0 || !s.Queue("q").Blind() || s.Queue("q").Job("x").Place != Delayed {
		t.Errorf("it breaks %v; the job is %+v", rules, s.Queue("q").Job("x"))
	}
}

// wild draws any step, right or wrong.
func wild(r *rand.Rand) history.Step {
	whats := []string{history.Store, history.Settle, history.Claim, history.Promote, history.Reclaim, history.Gone, history.Join, history.Stale,
		history.Orphan, history.Stray, history.Forget, history.Drop, history.Revive, history.Reschedule, history.Later, history.SpentOut, history.Bye, history.Exists}
	places := []string{"", Waiting, Delayed, Active, Completed, Dead, Cancelled}
	s := history.Step{Queue: "q", US: us + r.Int64N(5)*1000, Who: fmt.Sprint("n", r.IntN(2)), Turn: r.Int64N(9), Epoch: r.Int64N(4), Script: "exchange"}
	for range r.IntN(4) {
		s.Moves = append(s.Moves, history.Move{
			What: whats[r.IntN(len(whats))], ID: fmt.Sprint(r.IntN(3)), From: places[r.IntN(7)], To: places[r.IntN(7)], Fence: r.Int64N(9),
			Session: fmt.Sprint("n", r.IntN(2)), Verb: string("CRDSLUX?"[r.IntN(8)]), Spent: r.IntN(3), Max: r.IntN(3), Due: us/1000 + r.Int64N(4), Until: r.Int64N(2),
		})
	}
	return s
}

func TestWhatRedisLosesLeavesNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		keep, lose, more := rapid.IntRange(1, 30).Draw(t, "kept"), r.IntN(30), r.IntN(30)
		direct, detour := New(2), New(2)
		at := int64(0)
		both := func(n int) {
			for range n {
				s := wild(r)
				s.Index = at
				at++
				if a, b := direct.Apply(s), detour.Apply(s); !reflect.DeepEqual(a, b) {
					t.Fatalf("entry %d breaks %v, and after a detour %v", s.Index, a, b)
				}
			}
		}
		both(keep)
		for i := range lose {
			s := wild(r)
			s.Index = at + int64(i)
			detour.Apply(s)
		}
		detour.Apply(history.Step{Queue: "q", Index: at, Back: true})
		both(more)
		a, b := direct.Queue("q"), detour.Queue("q")
		if !reflect.DeepEqual(a.jobs, b.jobs) || !reflect.DeepEqual(a.senders, b.senders) || a.counts != b.counts || a.next != b.next {
			t.Fatalf("the queues differ: %+v and %+v", a, b)
		}
	})
}
