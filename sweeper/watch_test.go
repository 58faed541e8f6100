package sweeper

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

// answer is one answered beat: when it was sent, and the beat of session x in
// it; 0 means that x was not there.
type answer struct {
	sent time.Duration
	beat int64
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers []answer
		now     time.Duration // 0: with the last answer
		silent  time.Duration
		missing time.Duration
		fresh   bool
	}{
		"before the first answer nobody is anything":      {now: 5 * time.Second},
		"the first answer says nothing yet":               {answers: []answer{{0, 7}}},
		"an unchanged beat is silence":                    {answers: []answer{{0, 7}, {500 * ms, 7}, {1000 * ms, 7}}, silent: time.Second},
		"a change ends the silence":                       {answers: []answer{{0, 7}, {500 * ms, 7}, {1000 * ms, 8}}, fresh: true},
		"so does a beat that went back":                   {answers: []answer{{0, 7}, {500 * ms, 7}, {1000 * ms, 6}}, fresh: true},
		"a gap starts the watch anew":                     {answers: []answer{{0, 7}, {1001 * ms, 7}, {1501 * ms, 7}}, silent: 500 * ms},
		"and a change over a gap is no sign of life":      {answers: []answer{{0, 7}, {1001 * ms, 8}}},
		"a second between two answers is no gap":          {answers: []answer{{0, 7}, {time.Second, 7}}, silent: time.Second},
		"silence is counted up to the last answer":        {answers: []answer{{0, 7}, {800 * ms, 7}}, now: 1700 * ms, silent: 800 * ms},
		"without answers for a second nobody is silent":   {answers: []answer{{0, 7}, {800 * ms, 7}}, now: 1801 * ms},
		"a session that went is missing":                  {answers: []answer{{0, 7}, {500 * ms, 0}, {900 * ms, 0}}, missing: 400 * ms},
		"one that never was is missing from the start":    {answers: []answer{{0, 0}, {500 * ms, 0}}, missing: 500 * ms},
		"after a gap it is missing anew":                  {answers: []answer{{0, 0}, {1500 * ms, 0}, {1700 * ms, 0}}, missing: 200 * ms},
		"one that came back is a new one":                 {answers: []answer{{0, 7}, {400 * ms, 0}, {800 * ms, 7}}, fresh: true},
		"an answer that was overtaken is dropped":         {answers: []answer{{500 * ms, 7}, {400 * ms, 6}, {900 * ms, 7}}, silent: 400 * ms},
		"a beat stays fresh for less than a second":       {answers: []answer{{0, 7}, {500 * ms, 8}}, now: 1499 * ms, fresh: true},
		"one that was never seen to change is not fresh":  {answers: []answer{{0, 7}, {100 * ms, 7}}, silent: 100 * ms},
		"a session that appears is a sign of life itself": {answers: []answer{{0, 0}, {100 * ms, 7}}, fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, start := NewWatch(), time.Now()
			at := start.Add(tt.now)
			for _, a := range tt.answers {
				w.See(start.Add(a.sent), start.Add(a.sent), beatsOf(a.beat))
				if tt.now == 0 {
					at = start.Add(a.sent)
				}
			}
			if got := w.Silent("x", at); got != tt.silent {
				t.Errorf("Silent = %v, want %v", got, tt.silent)
			}
			if got := w.Missing("x", at); got != tt.missing {
				t.Errorf("Missing = %v, want %v", got, tt.missing)
			}
			if got := w.Fresh("x", at); got != tt.fresh {
				t.Errorf("Fresh = %v, want %v", got, tt.fresh)
			}
		})
	}
}

func beatsOf(beat int64) map[string]int64 {
	if beat == 0 {
		return nil
	}
	return map[string]int64{"x": beat}
}

func TestASlowHeartHasAWiderGap(t *testing.T) {
	t.Parallel()
	w, start := NewWatch(), time.Now()
	w.Every(2 * time.Second)
	w.See(start, start, beatsOf(1))
	w.See(start.Add(3*time.Second), start.Add(3*time.Second), beatsOf(1))
	if got := w.Silent("x", start.Add(6*time.Second)); got != 3*time.Second {
		t.Errorf("Silent = %v, want 3 s", got)
	}
}

func TestTheHeartIsToldToLookMoreOften(t *testing.T) {
	t.Parallel()
	w, start := NewWatch(), time.Now()
	for i := range 11 {
		at := start.Add(time.Duration(i) * 100 * ms)
		w.See(at, at, map[string]int64{"x": 1, "y": int64(i)})
		if got, want := w.Suspicious(at), i == 10; got != want {
			t.Errorf("after %v: Suspicious = %v, want %v", at.Sub(start), got, want)
		}
	}
	if w.Suspicious(start.Add(3 * time.Second)) {
		t.Error("Suspicious while nothing is answered, want the usual pace")
	}
	if _, ok := w.Beat("z"); ok {
		t.Error("z has a beat")
	}
	if beat, ok := w.Beat("y"); !ok || beat != 10 {
		t.Errorf("Beat(y) = %v, %v", beat, ok)
	}
	if got := w.Sessions(); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("Sessions = %v", got)
	}
	select {
	case <-w.Changed():
	default:
		t.Error("nobody was told of a change")
	}
}

// TestSilenceAgainstItsDefinition compares the Watch with the sentence that
// defines it, computed from the whole history.
func TestSilenceAgainstItsDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, start := NewWatch(), time.Now()
		var history []answer
		at := time.Duration(0)
		steps := rapid.IntRange(1, 40).Draw(t, "steps")
		for i := range steps {
			at += time.Duration(rapid.SampledFrom([]int{1, 99, 100, 500, 999, 1000, 1001, 3000}).Draw(t, fmt.Sprint("gap", i))) * ms
			a := answer{at, int64(rapid.IntRange(0, 2).Draw(t, fmt.Sprint("beat", i)))}
			history = append(history, a)
			w.See(start.Add(a.sent), start.Add(a.sent), beatsOf(a.beat))
		}
		now := at + time.Duration(rapid.SampledFrom([]int{0, 500, 1000, 1001}).Draw(t, "later"))*ms
		wantSilent, wantMissing := unchanged(history, now)
		if got := w.Silent("x", start.Add(now)); got != wantSilent {
			t.Fatalf("Silent = %v, want %v\n%v", got, wantSilent, history)
		}
		if got := w.Missing("x", start.Add(now)); got != wantMissing {
			t.Fatalf("Missing = %v, want %v\n%v", got, wantMissing, history)
		}
	})
}

// unchanged walks back from the last answer as long as there is no gap and the
// beat is the same.
func unchanged(history []answer, now time.Duration) (silent, missing time.Duration) {
	last := history[len(history)-1]
	if now-last.sent > time.Second {
		return 0, 0
	}
	first := last
	for i := len(history) - 2; i >= 0; i-- {
		if first.sent-history[i].sent > time.Second || history[i].beat != last.beat {
			break
		}
		first = history[i]
	}
	if last.beat == 0 {
		return 0, last.sent - first.sent
	}
	return last.sent - first.sent, 0
}

// A sweeper may be far from Redis: what it sees is as old as its answer was
// slow.
func TestSlowAnswersDoNotLengthenASilence(t *testing.T) {
	t.Parallel()
	w, start := NewWatch(), time.Now()
	for i := range 5 {
		sent := start.Add(time.Duration(i) * 500 * time.Millisecond)
		w.See(sent, sent.Add(400*time.Millisecond), map[string]int64{"x": 1})
	}
	if got := w.Silent("x", start.Add(2400*time.Millisecond)); got != 1600*time.Millisecond {
		t.Errorf("silent for %v, want the 1.6 s from the first answer to the last question", got)
	}
	first := NewWatch()
	first.See(start, start.Add(400*time.Millisecond), map[string]int64{"x": 1})
	if got := first.Silent("x", start.Add(500*time.Millisecond)); got != 0 {
		t.Errorf("after one answer it is silent for %v", got)
	}
}
