package check

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

// recovery follows what each killed node held until it ran again.
func (j *judge) recovery() {
	over := map[string]int64{}
	for _, c := range j.log.condemned {
		over[c.session] = c.t
	}
	var took []float64
	for _, b := range j.faults.blows {
		for _, h := range b.hits {
			if h.Signal != "KILL" || h.Session == "" || len(h.Held) == 0 {
				continue
			}
			k := j.recovered(b, h, over[h.Session])
			if j.v.Kills = append(j.v.Kills, k); k.RedisUp && k.Free && k.Running > 0 {
				took = append(took, float64(k.Running)/1000)
			}
		}
	}
	slices.SortStableFunc(j.v.Kills, func(a, b Recovery) int { return cmp.Compare(a.T, b.T) })
	if j.quantiles(took, RecoveryP50, 0.5); len(took) > 0 {
		j.quantiles(took, RecoveryP95, 0.95)
		j.quantiles(took, RecoveryMax, 1)
	}
	j.v.Recovery = buckets(took, 250)
}

// recovered follows one kill.
func (j *judge) recovered(b *blow, h history.Strike, condemned int64) Recovery {
	k := Recovery{
		N: b.n, Kind: b.kind, Node: h.Target, Session: h.Session, T: h.T, Jobs: len(h.Held), Sweeper: h.Sweeper,
		Noticed: j.noticed(h), Condemned: max(condemned-h.T, 0),
	}
	var from int64 = never // of the first job's reclaim, µs of Redis
	whole := true
	for _, held := range h.Held {
		queue, id, _ := strings.Cut(held, "/")
		a := j.lastOf(key{queue, id}, h.Session)
		if a == nil || a.end == nil || a.end.verb != "" {
			continue // it ended in the last moment
		}
		moved := j.at(history.Step{US: a.end.us, T: h.T})
		k.Moved = max(k.Moved, moved-h.T)
		if a.end.to != life.Waiting {
			continue // it waits by right, or ended
		}
		from = min(from, a.end.us)
		next := j.nextRun(a, h.T)
		if next == nil {
			whole = false
			continue
		}
		k.Running = max(k.Running, next.T-h.T)
	}
	if !whole {
		k.Running = 0
	}
	k.RedisUp = j.faults.during(h.T, h.T+max(k.Running, k.Moved), harmsLinks) == nil
	if us, _, known := j.h.Clock.Redis(h.T + k.Running); known && from < us {
		k.Free = j.room.free(from, us)
	}
	return k
}

// lastOf returns the last claim of a job by a session.
func (j *judge) lastOf(k key, session string) *attempt {
	for _, a := range slices.Backward(j.log.byJob[k]) {
		if a.session == session {
			return a
		}
	}
	return nil
}

// nextRun returns the first run of a job after t under another claim.
func (j *judge) nextRun(a *attempt, t int64) *run {
	for _, r := range j.runs.byJob[a.key] {
		if r.T > t && r.claim != a {
			return r
		}
	}
	return nil
}

// noticed returns how long after a kill another node first saw fewer members
// than before it; 0 if that was in no sample.
func (j *judge) noticed(h history.Strike) int64 {
	i, _ := slices.BinarySearchFunc(j.h.Samples, h.T, func(s history.Sample, t int64) int { return cmp.Compare(s.T, t) })
	if i == 0 {
		return 0
	}
	before := j.h.Samples[i-1].Members
	for _, s := range j.h.Samples[i:] {
		if s.T > h.T+time60 {
			break
		}
		for node, n := range s.Members {
			if was, known := before[node]; known && node != h.Target && n < was {
				return s.T - h.T
			}
		}
	}
	return 0
}

// time60 bounds the search for a notice: 60 s, in µs.
const time60 = 60_000_000

// lateness measures how long after their due time delayed jobs were claimed, of
// those that found a free slot and a Redis that answered.
func (j *judge) lateness() {
	var late []float64
	for _, a := range j.log.attempts {
		if a.due == 0 || !j.room.free(a.due*1000, a.us) {
			continue
		}
		t := j.at(history.Step{US: a.us})
		ms := float64(a.us)/1000 - float64(a.due)
		if j.faults.during(t-int64(ms*1000), t, harmsLinks) == nil {
			late = append(late, ms)
		}
	}
	j.quantiles(late, LateP50, 0.5)
	j.quantiles(late, LateP99, 0.99)
	j.quantiles(late, LateMax, 1)
	j.v.Lateness = buckets(late, 5)
	if j.log.n[history.Promote] > 0 {
		j.v.Measures[PausePromotion] = j.log.longest
	}
}

// quantiles measures the value that a share of all does not exceed. Of nothing
// there is no measure.
func (j *judge) quantiles(values []float64, measure string, share float64) {
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	i := int(share*float64(len(values))+0.999999) - 1
	j.v.Measures[measure] = values[min(max(i, 0), len(values)-1)]
}

// buckets counts values by bounds that double from first on.
func buckets(values []float64, first float64) []Bucket {
	if len(values) == 0 {
		return nil
	}
	most := slices.Max(values)
	var out []Bucket
	for bound, from := first, -1.0; ; bound *= 2 {
		b := Bucket{Most: min(bound, max(most, 0))}
		for _, v := range values {
			if (v > from || len(out) == 0) && v <= bound {
				b.Count++
			}
		}
		out = append(out, b)
		if bound >= most {
			return out
		}
		from = bound
	}
}
