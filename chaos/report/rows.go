package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// meanings says what a measure is, for people.
var meanings = []fact{
	{check.MeasureLost, "accepted jobs that are nowhere"},
	{check.MeasureDuplicates, "duplicate runs"},
	{check.Throughput, "settled jobs a second"},
	{check.RecoveryP50, "recovery after a kill, p50"},
	{check.RecoveryP95, "recovery after a kill, p95"},
	{check.RecoveryMax, "recovery after a kill, max"},
	{check.LateP50, "lateness of delayed jobs, p50"},
	{check.LateP99, "lateness of delayed jobs, p99"},
	{check.LateMax, "lateness of delayed jobs, max"},
	{check.PausePromotion, "longest time that a due job lay unpromoted"},
	{check.SpentGraceful, "attempts spent by graceful stops"},
	{check.Unexplained, "sessions condemned without a cause"},
	{check.MeasureReclaimed, "jobs taken from dead sessions"},
	{check.StaleRefused, "late settlements refused"},
	{check.SettledAgain, "settlements sent again that had counted"},
	{check.SettleTime, "from the last fault until all was at rest"},
	{check.LossWindow, "age of the oldest job that Redis lost"},
}

// meaning returns what a measure is, or its name.
func meaning(name string) string {
	for _, m := range meanings {
		if m.Name == name {
			return m.Value
		}
	}
	return name
}

// keyFigures are those at the top of the page.
func keyFigures(measures map[string]float64) []fact {
	var facts []fact
	for _, name := range []string{check.MeasureLost, check.RecoveryP95, check.RecoveryMax, check.LateP99, check.MeasureDuplicates, check.Throughput} {
		if v, ok := measures[name]; ok {
			facts = append(facts, fact{meaning(name), figure(name, v)})
		}
	}
	return facts
}

// measureNames returns what was measured or had a bar: those we know in our order,
// then others by name.
func measureNames(v *check.Verdict) []string {
	known := map[string]bool{}
	for name := range v.Measures {
		known[name] = true
	}
	for _, b := range v.Bars {
		known[b.Measure] = true
	}
	var order []string
	for _, m := range meanings {
		if known[m.Name] {
			order = append(order, m.Name)
			delete(known, m.Name)
		}
	}
	return append(order, slices.Sorted(maps.Keys(known))...)
}

// figures are all that could be measured.
func figures(v *check.Verdict) []fact {
	var facts []fact
	for _, name := range measureNames(v) {
		if have, ok := v.Measures[name]; ok {
			facts = append(facts, fact{meaning(name), figure(name, have)})
		}
	}
	return facts
}

// about says what was tested, where and when. What is not known is left out.
func about(r history.Run) []fact {
	facts := []fact{
		{"scenario", r.Scenario}, {"seed", fmt.Sprint(r.Seed)}, {"cases", strings.Join(r.Cases, ", ")},
		{"Kelpie", strings.TrimSpace(r.Version + " " + r.Commit)}, {"binary", r.Kelpie}, {"Go", r.Go}, {"system", r.System},
		{"Redis", r.Redis}, {"durability", r.Durable}, {"topology", r.Settings.Topology},
	}
	if !r.Started.IsZero() {
		facts = append(facts, fact{"started", r.Started.UTC().Format("2006-01-02 15:04:05 UTC")})
	}
	if !r.Ended.IsZero() {
		facts = append(facts, fact{"ran for", took(r.Ended.Sub(r.Started).Microseconds())})
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

// settings says how the herd and the work were set.
func settings(r history.Run) []fact {
	s := r.Settings
	facts := []fact{
		{"nodes", count(s.Nodes)}, {"workers of each node", count(s.Workers)}, {"queues", strings.Join(s.Queues, ", ")}, {"jobs", count(s.Jobs)},
		{"duration", took(s.Duration.Microseconds())}, {"heartbeat", took(s.Heartbeat.Microseconds())}, {"silence", took(s.Silence.Microseconds())}, {"lease", took(s.Lease.Microseconds())},
		{"drain", took(s.Drain.Microseconds())}, {"bound for settling", took(s.Settle.Microseconds())},
		{"work", works(s.Work)}, {"Redis may lose", "nothing"},
	}
	if r.Loss.Window > 0 {
		facts[len(facts)-1].Value = fmt.Sprintf("what it acknowledged in the last %s: %s", took(r.Loss.Window.Microseconds()), r.Loss.Why)
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

// works says what the jobs were like.
func works(w history.Work) string {
	parts := []string{fmt.Sprintf("%d producers", w.Producers), fmt.Sprintf("handlers run for %s to %s", took(w.Shortest.Microseconds()), took(w.Longest.Microseconds()))}
	for _, share := range []struct {
		of   int
		what string
	}{
		{w.Delayed, "delayed"}, {w.Failing, "fail at first"}, {w.Panicking, "panic"}, {w.Snoozing, "snooze"}, {w.Dropping, "are discarded"},
		{w.Doomed, "fail until dead"}, {w.Deaf, "ignore their context"}, {w.Parents, "enqueue others"}, {w.Chosen, "have a chosen id"}, {w.CLI, "come by the command line"},
	} {
		if share.of > 0 {
			parts = append(parts, fmt.Sprintf("%s %% %s", trim(float64(share.of)/10), share.what))
		}
	}
	return strings.Join(parts, ", ")
}

type termRow struct{ At, Node, Session, Epoch string }

// termRows lists who swept, the first mostTerms of them, and how many there were.
func termRows(s series, known map[string]string) (rows []termRow, all int) {
	for _, t := range s.terms {
		if t.session == "" {
			continue
		}
		if all++; all <= mostTerms {
			rows = append(rows, termRow{took(t.from), nameOf(t.session, known), t.session, fmt.Sprint(t.epoch)})
		}
	}
	return rows, all
}

type killRow struct {
	check.Recovery
	At, Noticed, Condemned, Running, Remark string
	counted                                 bool
}

// killRows lists the kills in the order of time; of too many those which are
// not counted go first, then the fastest.
func killRows(d *Document) []killRow {
	rows := make([]killRow, 0, len(d.Kills))
	for _, k := range d.Kills {
		s := stagesOf(k)
		row := killRow{Recovery: k, At: took(max(0, k.T-d.begin)), Remark: remarkOf(k), counted: counted(k)}
		row.Noticed, row.Condemned, row.Running = "not seen", "never", "never"
		if k.Noticed > 0 {
			row.Noticed = took(k.Noticed)
		}
		if k.Condemned > 0 {
			row.Condemned = took(k.Condemned)
		}
		if k.Running > 0 {
			row.Running = took(s.total)
		}
		rows = append(rows, row)
	}
	if len(rows) > mostKills {
		slices.SortStableFunc(rows, func(a, b killRow) int {
			if a.counted != b.counted {
				return map[bool]int{true: -1, false: 1}[a.counted]
			}
			return cmp.Compare(b.Recovery.Running, a.Recovery.Running)
		})
		rows = rows[:mostKills]
		slices.SortStableFunc(rows, func(a, b killRow) int { return cmp.Compare(a.T, b.T) })
	}
	return rows
}

// remarkOf says why a kill is not among those whose recovery is judged, and
// whether it was the sweeper's.
func remarkOf(k check.Recovery) string {
	var parts []string
	if k.Sweeper {
		parts = append(parts, "was the sweeper")
	}
	if !k.RedisUp {
		parts = append(parts, "another fault came between: not counted")
	}
	if !k.Free {
		parts = append(parts, "no free slots: not counted")
	}
	if k.Running == 0 {
		parts = append(parts, "its jobs never ran again")
	}
	return strings.Join(parts, "; ")
}

type repeat struct {
	check.Duplicate
	Shown []span
	More  int
}

type span struct {
	check.Span
	At, Until string
}

// repeats lists duplicates; the judge puts the unexplained ones first.
func repeats(d *Document) []repeat {
	var rows []repeat
	for _, dup := range d.Duplicates[:min(len(d.Duplicates), mostDuplicates)] {
		row := repeat{Duplicate: dup, More: max(0, len(dup.Runs)-mostRuns)}
		for _, r := range dup.Runs[:min(len(dup.Runs), mostRuns)] {
			s := span{Span: r, At: took(max(0, r.From-d.begin)), Until: "its end was never written"}
			if r.To > 0 {
				s.Until = "ran " + took(r.To-r.From)
			}
			row.Shown = append(row.Shown, s)
		}
		rows = append(rows, row)
	}
	return rows
}

type faultRow struct {
	Fault
	At, Took, Where, Remark string
}

func faultRows(d *Document) []faultRow {
	var rows []faultRow
	for _, f := range d.Faults[:min(len(d.Faults), mostFaults)] {
		row := faultRow{Fault: f, At: took(f.Begin), Took: "at once", Where: strings.Join(f.Targets, ", "), Remark: cut(f.Note, mostText)}
		if f.End-f.Begin >= 10_000 {
			row.Took = took(f.End - f.Begin)
		}
		if f.Skipped {
			row.Took = "not struck"
		}
		if f.Sick != "" {
			row.Remark = strings.TrimSuffix("health was bad "+f.Sick+" it: "+row.Remark, ": ")
		}
		rows = append(rows, row)
	}
	return rows
}
