package demo

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// t0 is when the scene of the referee's tests begins.
var t0 = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return t0.Add(d) }

var (
	gone   = answer{status: http.StatusGone}
	failed = answer{status: http.StatusInternalServerError}
)

// ordinary is a run in which all promises hold: "a" and "b" are held by nodes
// that are killed, "c" is delayed, "d" is refused for good.
func ordinary() evidence {
	post := func(number int, id, body string, then answer, due time.Time) posted {
		l := letter{event: "e", body: []byte(body), sum: sumOf([]byte(body))}
		p := posted{id: id, number: number, due: due, plan: plan{letter: l, then: then}}
		if !due.IsZero() {
			p.plan.delay = time.Second
		}
		return p
	}
	come := func(p posted, at time.Duration, a answer, answered bool) arrival {
		return arrival{number: p.number, id: p.id, at: after(at), sum: p.plan.letter.sum, answer: a, answered: answered}
	}
	a, b := post(0, "a", "1", taken, time.Time{}), post(1, "b", "22", taken, time.Time{})
	c, d := post(2, "c", "333", taken, after(1500*time.Millisecond)), post(3, "d", "4444", gone, time.Time{})
	return evidence{
		posted: []posted{a, b, c, d},
		arrivals: []arrival{
			come(a, 900*time.Millisecond, taken, false),
			come(d, time.Second, gone, true),
			come(c, 1503*time.Millisecond, failed, true),
			come(c, 2600*time.Millisecond, taken, true),
			come(a, 3200*time.Millisecond, taken, true),
			come(b, 9900*time.Millisecond, taken, true),
			come(b, 12500*time.Millisecond, taken, true),
		},
		kills: []kill{
			{at: after(time.Second), node: "fly", session: "fly-1", held: []string{"a"}},
			{at: after(10 * time.Second), node: "bess", session: "bess-1", sweeper: true, next: after(12400 * time.Millisecond), held: []string{"b"}},
		},
		dead: []string{"d"},
		bars: bars{kills: 2, recovery: 3 * time.Second, late: 20 * time.Millisecond},
	}
}

func TestAnOrdinaryRunHoldsAllPromises(t *testing.T) {
	t.Parallel()
	v := judge(ordinary())
	if len(v.broken) > 0 {
		t.Errorf("broken: %v", v.broken)
	}
	if v.accepted != 4 || v.delivered != 3 || v.dead != 1 || v.refused != 1 || v.lost != 0 || v.early != 0 || v.wrong != 0 {
		t.Errorf("verdict %+v", v)
	}
	if v.duplicates != 2 || v.unhurt != 0 {
		t.Errorf("%d duplicates, %d not of a killed node, want 2 and 0", v.duplicates, v.unhurt)
	}
	if want := []time.Duration{2200 * time.Millisecond, 2500 * time.Millisecond}; !slices.Equal(v.recovery, want) {
		t.Errorf("recovery %v, want %v", v.recovery, want)
	}
	if want := (spread{1, 3 * time.Millisecond, 3 * time.Millisecond, 3 * time.Millisecond}); v.late != want || v.lateAlone.n != 0 {
		t.Errorf("late %+v and %+v, want %+v and nothing: only the first arrival counts", v.late, v.lateAlone, want)
	}
}

func TestTheRefereeFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(*evidence)
		want  string // in the only broken promise
	}{
		"a webhook that never arrived is lost": {
			func(e *evidence) { e.arrivals = slices.Delete(e.arrivals, 2, 4) }, "1 accepted webhooks were neither delivered nor refused for good: c"},
		"one that was only answered with errors is lost": {
			func(e *evidence) { e.arrivals[3].answer = failed }, "neither delivered nor refused"},
		"one whose client died before the answer is lost": {
			func(e *evidence) { e.arrivals[3].answered = false }, "neither delivered nor refused"},
		"an arrival a microsecond before its due time is early": {
			func(e *evidence) { e.arrivals[2].at = e.posted[2].due.Add(-time.Microsecond) }, "1 arrivals were before their due time"},
		"a later attempt cannot be early by the first due time": {
			func(e *evidence) { e.arrivals[3].at = e.posted[2].due }, ""},
		"a body that differs by one byte is no delivery": {
			func(e *evidence) {
				extra := e.arrivals[3]
				extra.sum[31] ^= 1
				e.arrivals = append(e.arrivals, extra)
			}, "1 arrivals had other bytes than were enqueued"},
		"the body of another webhook is no delivery": {
			func(e *evidence) {
				extra := e.arrivals[3]
				extra.number, extra.sum = 1, e.posted[1].plan.letter.sum
				e.arrivals = append(e.arrivals, extra)
			}, "1 arrivals had other bytes"},
		"an id that was never accepted is a stranger": {
			func(e *evidence) {
				e.arrivals = append(e.arrivals, arrival{number: 2, id: "x", at: after(time.Minute), answer: taken, answered: true})
			}, "1 arrivals had a Webhook-Id that was never accepted"},
		"a dead job that was not refused is one too many": {
			func(e *evidence) { e.dead = append(e.dead, "c") }, "1 jobs are dead that nobody refused for good: c"},
		"a dead job that nobody knows is one too many": {
			func(e *evidence) { e.dead = append(e.dead, "y") }, "1 jobs are dead that nobody refused for good: y"},
		"a refused webhook that the store does not list as dead is missing": {
			func(e *evidence) { e.dead = nil }, "1 webhooks that were to be refused for good are not among the dead: d"},
		"a recovery at the bar is too slow": {
			func(e *evidence) { e.arrivals[4].at = after(4 * time.Second) }, "the recovery from the kill of fly took 3.00 s: must be under 3s"},
		"a job that does not come back is no recovery": {
			func(e *evidence) { e.arrivals[0].answered, e.arrivals = true, slices.Delete(e.arrivals, 4, 5) }, "not all jobs of fly came back after its kill"},
		"an arrival that was on the wire at the kill is no recovery": {
			func(e *evidence) { e.arrivals[4].at = after(time.Second + onTheWire) }, "not all jobs of fly came back after its kill"},
		"a kill that meets no job shows nothing": {
			func(e *evidence) { e.kills[0].held = nil }, "the kill of fly met no job: nothing was shown"},
		"one kill is not enough": {
			func(e *evidence) { e.kills = e.kills[:1] }, "1 nodes were killed, 2 were meant to be"},
		"late jobs on a machine whose own timers are late say nothing": {
			func(e *evidence) {
				e.arrivals[2].at = e.posted[2].due.Add(time.Second)
				e.strain = spread{n: 100, p99: 4 * time.Millisecond}
			}, ""},
		"late jobs on a quiet machine do": {
			func(e *evidence) {
				e.arrivals[2].at = e.posted[2].due.Add(time.Second)
				e.strain = spread{n: 100, p99: 3 * time.Millisecond, max: 19 * time.Millisecond}
			}, "the lateness p99 is 1.00 s: must be under 20ms"},
		"lateness at the bar is too late": {
			func(e *evidence) { e.arrivals[2].at = e.posted[2].due.Add(20 * time.Millisecond) }, "the lateness p99 is 20.0 ms: must be under 20ms"},
		"a store in this process has no bar for it": {
			func(e *evidence) { e.arrivals[2].at, e.bars.late = e.posted[2].due.Add(time.Second), 0 }, ""},
		"more than one delivery is no broken promise": {
			func(e *evidence) { e.arrivals = append(e.arrivals, e.arrivals[3]) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := ordinary()
			tt.spoil(&e)
			v := judge(e)
			switch {
			case tt.want == "" && len(v.broken) > 0:
				t.Errorf("broken: %q, want nothing", v.broken)
			case tt.want != "" && (len(v.broken) != 1 || !strings.Contains(v.broken[0], tt.want)):
				t.Errorf("broken: %q, want only %q", v.broken, tt.want)
			}
		})
	}
}

func TestANumberOfDeadOtherThanPlannedIsFound(t *testing.T) {
	t.Parallel()
	e := ordinary()
	e.arrivals[1].answer = taken // the receiver took what it was told to refuse
	v := judge(e)
	if len(v.broken) == 0 || !strings.Contains(v.broken[0], "0 webhooks were refused for good: the plan was 1") {
		t.Errorf("broken: %q", v.broken)
	}
}

func TestARunWithoutAnythingProvesNothing(t *testing.T) {
	t.Parallel()
	if v := judge(evidence{}); len(v.broken) == 0 {
		t.Error("an empty run holds all promises, want nothing accepted to be a fault")
	}
}

func TestDuplicatesThatNoKillExplainsAreCountedApart(t *testing.T) {
	t.Parallel()
	e := ordinary()
	e.arrivals = append(e.arrivals, e.arrivals[3])
	if v := judge(e); v.duplicates != 3 || v.unhurt != 1 {
		t.Errorf("%d duplicates, %d without a kill, want 3 and 1", v.duplicates, v.unhurt)
	}
}

func TestWhatIsDueWithoutASweeperIsCountedApart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		due   time.Duration
		next  time.Time
		alone bool
	}{
		"due before the kill":                     {9999 * time.Millisecond, after(12 * time.Second), false},
		"due at the kill":                         {10 * time.Second, after(12 * time.Second), true},
		"due in between":                          {11 * time.Second, after(12 * time.Second), true},
		"due when the next one is at work":        {12 * time.Second, after(12 * time.Second), false},
		"due much later, but no other one showed": {40 * time.Second, time.Time{}, true},
		"due while another node is missing":       {2 * time.Second, after(12 * time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			e := ordinary()
			e.posted[2].due, e.kills[1].next = after(tt.due), tt.next
			e.arrivals[2].at, e.arrivals[3].at = after(tt.due+time.Millisecond), after(tt.due+time.Second)
			v := judge(e)
			if got := v.lateAlone.n == 1; got != tt.alone || v.late.n+v.lateAlone.n != 1 {
				t.Errorf("late %+v, without a sweeper %+v", v.late, v.lateAlone)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	upTo := func(n int) (d []time.Duration) {
		for i := n; i > 0; i-- {
			d = append(d, time.Duration(i))
		}
		return d
	}
	for name, tt := range map[string]struct {
		d    []time.Duration
		want spread
	}{
		"nothing is nothing":               {nil, spread{}},
		"one is all of it":                 {[]time.Duration{7}, spread{1, 7, 7, 7}},
		"the ranks of a hundred are exact": {upTo(100), spread{100, 50, 99, 100}},
		"of ten the p99 is the largest":    {upTo(10), spread{10, 5, 10, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spreadOf(tt.d); got != tt.want {
				t.Errorf("spreadOf = %+v, want %+v", got, tt.want)
			}
		})
	}
}
