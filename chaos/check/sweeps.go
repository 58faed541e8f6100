package check

import (
	"maps"
	"slices"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/life"
)

// sweeps notes what a step tells about the sweeper.
func (j *judge) sweeps(s history.Step, t int64) {
	if s.Epoch != 0 && s.Queue != life.Cluster {
		if first, known := j.log.obeyed[s.Epoch]; !known || s.US < first.US {
			s.Moves = nil
			j.log.obeyed[s.Epoch] = s
		}
	}
	for _, m := range s.Moves {
		if m.What != history.Promote {
			continue
		}
		lay := float64(s.US)/1000 - float64(m.Due)
		if lay > j.log.longest && j.faults.during(t-int64(lay*1000), t, harmsLinks) == nil {
			j.log.longest = lay
		}
	}
}

// raisedEpochs holds every epoch that a queue obeyed against those that holders
// of the lock got.
func (j *judge) raisedEpochs() {
	for _, epoch := range slices.Sorted(maps.Keys(j.log.obeyed)) {
		s := j.log.obeyed[epoch]
		us, raised := j.log.epochs[epoch]
		switch {
		case raised && us <= s.US, j.faults.lossBefore(j.at(s)), j.h.Final == nil && !raised:
		case raised:
			j.broke(Epoch, "queue %s obeyed epoch %d before it was raised", s.Queue, epoch)
		default:
			j.broke(Epoch, "queue %s obeyed epoch %d, which nobody had raised", s.Queue, epoch)
		}
	}
}

// count says how much each rule of the model was held against.
func (j *judge) count() {
	r := j.log
	for _, n := range r.n {
		j.checked(Place, n)
	}
	settled := 0
	for _, verb := range []string{"C", "R", "D", "S", "L", "U", "X"} {
		settled += r.n["settle "+verb]
	}
	j.checked(Settlement, len(r.attempts)+settled+r.n[history.Stale])
	j.checked(Attempts, len(r.attempts)+settled+len(r.reclaims))
	j.checked(FinalState, r.ends)
	j.checked(Early, len(r.attempts)+r.n[history.Promote])
	j.checked(Epoch, len(r.epochs)+len(r.obeyed))
	j.checked(Gone, len(r.attempts)+len(r.reclaims))
	j.checked(Graceful, r.n["settle L"])
	for _, s := range j.h.Steps {
		if s.Turn != 0 {
			j.checked(Turns, 1)
		}
	}
}
