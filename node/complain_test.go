package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestComplaintsAreSaidOnceASecondAndCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, said := newComplaints(), map[string]int{}
		say := func(cause string) { c.Do(cause, func() { said[cause]++ }) }
		for range 50 { // 5 s
			say("down")
			say("full")
			time.Sleep(100 * time.Millisecond) // virtual
		}
		if said["down"] != 5 || said["full"] != 5 {
			t.Errorf("%v, want each cause said 5 times in 5 s", said)
		}
		for i := range 10 * maxCauses {
			say(fmt.Sprint(i))
		}
		if len(c.last) > maxCauses {
			t.Errorf("%d causes are remembered, want at most %d", len(c.last), maxCauses)
		}
	})
}
