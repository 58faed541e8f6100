package check

import (
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
)

func TestAHistoryThatProvesNothingIsUnknown(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(h *history.History){
		"no final":                         func(h *history.History) { h.Final = nil },
		"no log":                           func(h *history.History) { h.Steps = nil },
		"a hole in the log":                func(h *history.History) { h.Steps = append(h.Steps[:4:4], h.Steps[5:]...) },
		"fewer kills than were asked for":  func(h *history.History) { h.Run.Needs = map[string]int{KillsMidJob: 2} },
		"a bar that was not measured":      func(h *history.History) { h.Run.Bars = []history.Bar{{Measure: LateMax, Most: 1}} },
		"a set-up that was not well":       func(h *history.History) { h.Strikes[0].OK = false },
		"no final, and a log without end":  func(h *history.History) { h.Final, h.Steps = nil, h.Steps[:5] },
		"jobs that wait in a broken place": func(h *history.History) { h.Final.Settled, h.Strikes[0].OK = false, false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.once("before", "n3-c")
			w.enqueue("x", 0)
			w.claim("x", "n1-a")
			w.die("n1-a")
			w.claim("x", "n2-b")
			w.finish("x", "C")
			h := w.history()
			if v := Judge(h); v.Verdict != Pass {
				t.Fatalf("before any harm the verdict is %s: %q", v.Verdict, v.Why)
			}
			harm(h)
			if v := Judge(h); v.Verdict != Unknown {
				t.Errorf("the verdict is %s: %q", v.Verdict, v.Why)
			}
		})
	}
}

func TestABarIsHeldAgainstItsMeasure(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.enqueue("x", 0)
	w.claim("x", "n1-a")
	w.die("n1-a")
	w.pass(100 * time.Millisecond)
	w.claim("x", "n2-b")
	w.finish("x", "C")
	h := w.history()
	h.Run.Needs = map[string]int{KillsMidJob: 1, SweeperKills: 1, Reclaimed: 1, Sweepers: 2, Jobs: 1}
	h.Run.Bars = []history.Bar{{Measure: RecoveryMax, Most: 2500}, {Measure: MeasureDuplicates, Most: 1}}
	v := Judge(h)
	if v.Verdict != Pass || len(v.Kills) != 1 || len(v.Duplicates) != 1 || v.Duplicates[0].Fault != 1 {
		t.Fatalf("the verdict is %s: %q; kills %+v, duplicates %+v", v.Verdict, v.Why, v.Kills, v.Duplicates)
	}
	if k := v.Kills[0]; !k.Free || !k.RedisUp || !k.Sweeper || k.Running < 2_300_000 || k.Running > 2_400_000 || k.Moved > k.Running || k.Condemned > k.Moved {
		t.Errorf("the kill is %+v", k)
	}
	h.Run.Bars[0].Most = 2000
	if v := Judge(h); v.Verdict != Fail || v.Bars[0].Verdict != Fail || v.Bars[1].Verdict != Pass {
		t.Errorf("the verdict is %s, bars %+v", v.Verdict, v.Bars)
	}
}

func TestASettlementThatIsSentAgainIsNoLateOne(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.once("x", "n1-a") // and its answer was lost
	again := history.Move{What: history.Stale, ID: "x", Fence: w.jobs["x"].Fence, Session: "n1-a", Verb: "C", Again: true}
	w.step("q", "exchange", "n1-a", again)
	w.enqueue("y", 0)
	w.claim("y", "n1-a")
	w.die("n1-a")
	late := history.Move{What: history.Stale, ID: "y", Fence: w.jobs["y"].Fence, Session: "n1-a", Verb: "C", Again: true}
	w.claim("y", "n2-b")
	w.finish("y", "C")
	w.step("q", "exchange", "n1-a", late)
	v := Judge(w.history())
	if v.Verdict != Pass || v.Measures[StaleRefused] != 1 || v.Measures[SettledAgain] != 1 {
		t.Errorf("the verdict is %s: %q; %v late ones, %v sent again", v.Verdict, v.Why, v.Measures[StaleRefused], v.Measures[SettledAgain])
	}
}
