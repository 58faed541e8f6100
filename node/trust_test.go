package node

import (
	"testing"
	"time"
)

func TestTrustCountsFromTheStartOfTheLastAnsweredBeat(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	tests := map[string]struct {
		events      func(*trust)
		now         float64
		age, silent time.Duration
	}{
		"an answer counts from before its call":             {func(tr *trust) { tr.extend(at(1)) }, 4, 3 * time.Second, 3 * time.Second},
		"a later answer counts anew":                        {func(tr *trust) { tr.extend(at(1)); tr.extend(at(3)) }, 4, time.Second, time.Second},
		"while all peers lost Redis nothing is lost":        {func(tr *trust) { tr.extend(at(1)); tr.excuse(at(60), time.Hour) }, 60, 0, 59 * time.Second},
		"it counts again from when a first peer is back":    {func(tr *trust) { tr.extend(at(1)); tr.excuse(at(60), time.Hour) }, 65, 5 * time.Second, 64 * time.Second},
		"an answer after the excuse counts from itself":     {func(tr *trust) { tr.extend(at(0)); tr.excuse(at(60), time.Hour); tr.extend(at(61)) }, 62, time.Second, time.Second},
		"an excuse that comes in doubt is too late":         {func(tr *trust) { tr.extend(at(1)); tr.excuse(at(60), 10*time.Second) }, 60, 59 * time.Second, 59 * time.Second},
		"an answer from before the excuse does not undo it": {func(tr *trust) { tr.extend(at(0)); tr.excuse(at(60), time.Hour); tr.extend(at(59)) }, 62, 2 * time.Second, 3 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var tr trust
			tt.events(&tr)
			if got := tr.age(at(tt.now)); got != tt.age {
				t.Errorf("age %v, want %v", got, tt.age)
			}
			if got := tr.silentFor(at(tt.now)); got != tt.silent {
				t.Errorf("silent for %v, want %v", got, tt.silent)
			}
		})
	}
}

func TestDoubtBeginsAfterTwoThirdsOfTheLeaseAndEndsWithAnAnswer(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	in := h.lone(t, h.config("n1"))
	start := time.Now()
	in.trust.extend(start)
	for _, step := range []struct {
		after    time.Duration
		answered bool
		claiming bool
	}{
		{9 * time.Second, false, true},
		{10*time.Second + time.Millisecond, false, false},
		{60 * time.Second, false, false},
		{61 * time.Second, true, true},
		{70 * time.Second, false, true},
		{72 * time.Second, false, false},
	} {
		now := start.Add(step.after)
		if step.answered {
			in.trust.extend(now)
		}
		in.judgeTrust(now)
		if in.claiming() != step.claiming {
			t.Errorf("after %v: claiming %v, want %v", step.after, in.claiming(), step.claiming)
		}
	}
}
