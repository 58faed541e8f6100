package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// listen accepts in the kernel only, as a stopped process does.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestWitness(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tt := range map[string]struct {
		meet    bool
		close   bool // the listener, after the meeting
		swallow bool // packets, after the meeting
		other   bool // ask about another address
		ctx     context.Context
		want    Evidence
	}{
		"a closed port is refused":                              {meet: true, close: true, want: Refused},
		"a process that accepts and says nothing lives":         {meet: true, want: Accepted},
		"a black hole gives no answer":                          {meet: true, swallow: true, want: NoAnswer},
		"who never reached the session is unfit":                {close: true, want: Unfit},
		"who reached it at another address is unfit":            {meet: true, close: true, other: true, want: Unfit},
		"a caller that gives up has learnt nothing":             {meet: true, close: true, ctx: ended, want: Unfit},
		"a black hole with a caller that gives up, nothing too": {meet: true, swallow: true, ctx: ended, want: Unfit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hole atomic.Bool
			a := start(t, newNetwork(), Config{Name: "a", Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if hole.Load() {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}})
			l := listen(t)
			addr := l.Addr().String()
			if tt.meet {
				a.Meet("s1", addr)
				eventually(t, "the meeting", func() bool { return a.met.get("s1").reached })
			}
			if tt.close {
				l.Close()
			}
			hole.Store(tt.swallow)
			if tt.other {
				addr = listen(t).Addr().String()
			}
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			begun := time.Now()
			if got := a.Witness(ctx, "s1", addr); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestMembersAreMetWithoutBeingAskedFor(t *testing.T) {
	t.Parallel()
	var heard journal
	n := newNetwork()
	a := start(t, n, Config{Name: "a", Log: heard.logger()})
	b := start(t, n, Config{Name: "b", Seeds: []string{a.Addr()}, Meta: Meta{Session: "s-b"}})
	a.sees(b.Name(), Alive)
	eventually(t, "a meets b", func() bool { return a.met.get("s-b").reached })
	if !b.Reaches(t.Context(), a.Addr()) { // the visits leave no trace in a log
		t.Error("b does not reach a")
	}
	if got := a.Witness(t.Context(), "s-b", b.Addr()); got != Accepted {
		t.Errorf("b alive: %q", got)
	}
	b.kill()
	if got := a.Witness(t.Context(), "s-b", b.Addr()); got != Refused {
		t.Errorf("b killed: %q", got)
	}
	if a.Reaches(t.Context(), b.Addr()) {
		t.Error("a reaches a dead member")
	}
	if heard.count(`"level":"error"`) > 0 {
		t.Errorf("visits are logged as errors: %s", heard.String())
	}
}

func TestAFailedMeetingIsRepeated(t *testing.T) {
	t.Parallel()
	a, now := newAcquaintances(), time.Now()
	asked := func(at time.Duration, addr string) bool {
		a.ask("s", addr, now.Add(at))
		select {
		case <-a.queue:
			return true
		default:
			return false
		}
	}
	for i, step := range []struct {
		at   time.Duration
		addr string
		want bool
	}{
		{0, "x", true}, {time.Second, "x", false}, {meetAgain, "x", true}, {meetAgain, "y", true},
	} {
		if got := asked(step.at, step.addr); got != step.want {
			t.Errorf("step %d: asked %v, want %v", i, got, step.want)
		}
	}
	a.reached("s", "y")
	a.reached("s", "z") // a late answer from an older address
	if asked(time.Hour, "y") || !a.get("s").reached {
		t.Error("who was reached is asked again")
	}
}

func TestAcquaintancesAreBounded(t *testing.T) {
	t.Parallel()
	a, now := newAcquaintances(), time.Now()
	for i := range maxMet + 10 {
		a.mu.Lock()
		a.put(strconv.Itoa(i), acquaintance{tried: now.Add(time.Duration(i))})
		a.mu.Unlock()
	}
	if len(a.met) != maxMet || a.get("9") != (acquaintance{}) || a.get("10") == (acquaintance{}) {
		t.Errorf("%d kept; the oldest must go", len(a.met))
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	op := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for name, tt := range map[string]struct {
		err  error
		want Evidence
	}{
		"no error is a sign of life":       {nil, Accepted},
		"a reset says that nobody listens": {op(syscall.ECONNREFUSED), Refused},
		"an unreachable host":              {op(syscall.EHOSTUNREACH), NoAnswer},
		"a time-out of the dialer":         {op(syscall.ETIMEDOUT), NoAnswer},
		"a time-out of the context":        {fmt.Errorf("dial: %w", context.DeadlineExceeded), NoAnswer},
		"no route from here is our fault":  {op(syscall.ENETUNREACH), Unfit},
		"no free file is our fault":        {op(syscall.EMFILE), Unfit},
		"a local rule is our fault":        {op(syscall.EPERM), Unfit},
		"a name that does not resolve":     {&net.DNSError{Err: "no such host", IsNotFound: true}, Unfit},
		"anything else":                    {errors.New("?"), Unfit},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(tt.err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEnough(t *testing.T) {
	t.Parallel()
	for e, want := range map[Evidence][2]bool{ // not dead in gossip, dead
		Refused: {true, true}, NoAnswer: {false, true}, Accepted: {false, false}, Unfit: {false, false}, "": {false, false},
	} {
		if got := [2]bool{e.Enough(false), e.Enough(true)}; got != want {
			t.Errorf("%q: %v, want %v", e, got, want)
		}
	}
}
