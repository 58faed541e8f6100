package webhook

import (
	"fmt"
	"testing"
	"time"
)

func TestHostsBoundIsHalvedByTimeOutsAndGrowsAgain(t *testing.T) {
	t.Parallel()
	hs := newHosts(4)
	fill := func() (n int) {
		for {
			if _, ok := hs.enter("a:80", noon); !ok {
				return n
			}
			n++
		}
	}
	for i, step := range []struct {
		how  result
		want int // places after all have left so
	}{{noNews, 4}, {timedOut, 4}, {answered, 1}, {answered, 2}, {answered, 4}, {noNews, 4}} {
		n := fill()
		if n != step.want {
			t.Errorf("step %d: %d places, want %d", i, n, step.want)
		}
		for range n {
			hs.leave("a:80", step.how, noon)
		}
	}
	if len(hs.known) != 0 {
		t.Error("a host that is well is remembered")
	}
}

func TestHostsDoNotShareTheirBounds(t *testing.T) {
	t.Parallel()
	hs := newHosts(1)
	hs.enter("a:80", noon)
	if wait, ok := hs.enter("a:80", noon); ok || wait < shortestWait/2 || wait > longestWait {
		t.Errorf("a second place, or wait %v", wait)
	}
	if _, ok := hs.enter("b:80", noon); !ok {
		t.Error("another host is full")
	}
}

func TestWaitGrowsWithTheLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		turned, limit int
		most          time.Duration
	}{{1, 64, time.Second}, {10, 1, 11 * time.Second}, {1 << 30, 1, longestWait}} {
		for range 100 {
			if got := turnAway(tt.turned, tt.limit); got < tt.most/2 || got > tt.most {
				t.Errorf("%d away from %d: %v, want %v to %v", tt.turned, tt.limit, got, tt.most/2, tt.most)
			}
		}
	}
}

func TestSlowHostsAreForgotten(t *testing.T) {
	t.Parallel()
	hs := newHosts(4)
	for i := range 5000 { // one slow host a second
		now := noon.Add(time.Duration(i) * time.Second)
		name := fmt.Sprint(i, ":80")
		hs.enter(name, now)
		hs.leave(name, timedOut, now)
	}
	if n := len(hs.known); n > 3000 {
		t.Errorf("%d hosts are remembered", n)
	}
}
