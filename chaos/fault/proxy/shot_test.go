package proxy

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

func TestADroppedReplyMeansExecutedAndUnknown(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	a := s.p.Aim(Shot{Script: "rpush", Nth: 2, Times: 2, Do: DropReply})
	for i, want := range []string{"answered", "broken", "broken", "answered"} {
		s.ok(s.rdb.Ping(t.Context()).Err()) // another command is not counted
		err := s.rdb.RPush(t.Context(), s.key("list"), i).Err()
		if want == "answered" {
			s.ok(err)
		} else {
			s.broken(err)
		}
		s.arrives(s.key("list"))
	}
	within(t, "both hits", a.Done())
	if a.Hits() != 2 {
		t.Errorf("%d hits, want 2", a.Hits())
	}
}

func TestADroppedReplyInAPipelineLeavesTheEarlierOnes(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.p.Aim(Shot{Script: "incr", Nth: 3, Do: DropReply})
	c, err := net.Dial("tcp", s.p.Addr())
	s.ok(err)
	defer c.Close()
	s.ok(c.SetDeadline(time.Now().Add(20 * time.Second)))
	_, err = io.WriteString(c, strings.Repeat("INCR "+s.key("n")+"\r\n", 5))
	s.ok(err)
	if got, _ := io.ReadAll(c); string(got) != ":1\r\n:2\r\n" {
		t.Errorf("answer %q", got)
	}
}

func TestScriptsAreKnownByTheirNames(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	text := "-- " + s.prefix + "\n-- put before all\n-- count: adds one\n-- more: not a name\nreturn redis.call('RPUSH', KEYS[1], ARGV[1])"
	script := redis.NewScript(text)
	if n := s.p.names.name(script.Hash()); n != "" {
		t.Fatalf("the name is %q already", n)
	}
	a := s.p.Aim(Shot{Script: "count", Do: DropReply})
	b := s.p.Aim(Shot{Do: DropReply}) // any script: the next one, as the oldest shot hits
	for _, name := range []string{"first", "second"} {
		s.broken(script.Run(t.Context(), s.rdb, []string{s.key("list")}, name).Err())
		if got := s.arrives(s.key("list")); got != name {
			t.Errorf("%q arrived", got)
		}
	}
	within(t, "the hit by name", a.Done())
	within(t, "the hit on any script", b.Done())
	if n := s.p.names.name(strings.ToUpper(script.Hash())); n != "count" {
		t.Errorf("the name is %q", n)
	}
}

func TestNamesAreKnownFromTheStartOrByScriptLoad(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	script := redis.NewScript("-- loaded: x\nreturn 1")
	s.ok(script.Load(t.Context(), s.rdb).Err())
	if n := s.p.names.name(script.Hash()); n != "loaded" {
		t.Errorf("the name is %q", n)
	}
	if n := NewNames(map[string]string{"ab12": "enqueue"}).name("AB12"); n != "enqueue" {
		t.Errorf("the name is %q", n)
	}
}

func TestACommandThatRedisRefusedIsNoHit(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	script := redis.NewScript("-- unheard: x\n-- " + s.prefix + "\nreturn redis.call('RPUSH', KEYS[1], 'v')")
	names := NewNames(map[string]string{script.Hash(): "unheard"})
	p := run(t, redistest.Shared(t).Addr(), names)
	a := p.Aim(Shot{Script: "unheard", Do: DropReply})
	s.broken(script.Run(t.Context(), client(t, p.Addr()), []string{s.key("list")}).Err()) // EVALSHA finds nothing, EVAL is hit
	s.arrives(s.key("list"))
	within(t, "the hit", a.Done())
	if a.Hits() != 1 {
		t.Errorf("%d hits, want 1", a.Hits())
	}
}

func TestALateCopyRunsOnceMore(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	a := s.p.Aim(Shot{Script: "rpush", Do: LateCopy, Delay: 30 * time.Millisecond})
	begun := time.Now()
	s.ok(s.rdb.RPush(t.Context(), s.key("list"), "v").Err())
	s.arrives(s.key("list"))
	s.arrives(s.key("list"))
	if took := time.Since(begun); took < 30*time.Millisecond {
		t.Errorf("the copy came after %v", took)
	}
	within(t, "the answer to the copy", a.Done())
	if a.Hits() != 1 || !slices.Equal(a.Replies(), []string{"1"}) {
		t.Errorf("%d hits, replies %q", a.Hits(), a.Replies())
	}
}

// Whoever enqueues by a way that loses replies and copies commands has one job:
// the copy gets the outcome of the first.
func TestKelpiesOwnScriptsAreHit(t *testing.T) {
	t.Parallel()
	for name, names := range map[string]*Names{
		"known from the start":    NewNames(queue.Scripts()),
		"known when they pass by": NewNames(nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Dedicated(t) // one that does not know the scripts yet
			p := run(t, server.Addr(), names)
			rdb, err := queue.Connect("redis://" + p.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer rdb.Close()
			c, err := queue.New(rdb, queue.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			dropped := p.Aim(Shot{Script: "enqueue", Do: DropReply})
			copied := p.Aim(Shot{Script: "enqueue", Do: LateCopy})
			for range 2 {
				if _, err := c.Enqueue(t.Context(), queue.Request{Kind: "k", JobOptions: queue.JobOptions{Queue: "q"}}); err != nil {
					t.Fatal(err)
				}
			}
			within(t, "the lost reply", dropped.Done())
			within(t, "the answer to the copy", copied.Done())
			if r := copied.Replies(); len(r) != 1 || r[0] != "OK" && r[0] != "STALE" {
				t.Errorf("the copy got %q", r)
			}
			if n := server.Client(t).HLen(t.Context(), "kelpie:{q}:jobs").Val(); n != 2 {
				t.Errorf("%d jobs, want 2", n)
			}
		})
	}
}

func TestALateCopyEntersAsTheConnectionDid(t *testing.T) {
	t.Parallel()
	server := redistest.Dedicated(t, redistest.WithArgs("requirepass", "secret"))
	p := run(t, server.Addr(), NewNames(nil))
	rdb := client(t, p.Addr(), func(o *redis.Options) { o.Password, o.DB = "secret", 3 })
	a := p.Aim(Shot{Script: "incr", Do: LateCopy})
	if err := rdb.Incr(t.Context(), "n").Err(); err != nil {
		t.Fatal(err)
	}
	within(t, "the answer to the copy", a.Done())
	if got := rdb.Get(t.Context(), "n").Val(); got != "2" || !slices.Equal(a.Replies(), []string{"2"}) {
		t.Errorf("n is %q, replies %q", got, a.Replies())
	}
}

func TestALateCommandArrivesAfterTheConnectionBroke(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	a := s.p.Aim(Shot{Script: "rpush", Do: Late, Delay: 30 * time.Millisecond})
	begun := time.Now()
	s.broken(s.rdb.RPush(t.Context(), s.key("list"), "v").Err())
	s.nothing(s.key("list"))
	s.arrives(s.key("list"))
	if took := time.Since(begun); took < 30*time.Millisecond {
		t.Errorf("it came after %v", took)
	}
	within(t, "the answer", a.Done())
	s.nothing(s.key("list"))
}

func TestALateCommandThatFindsNoRedisSaysSo(t *testing.T) {
	t.Parallel()
	server := redistest.Dedicated(t)
	s := settingOn(t, server)
	a := s.p.Aim(Shot{Script: "ping", Do: Late, Delay: 300 * time.Millisecond})
	s.broken(s.rdb.Ping(t.Context()).Err())
	server.Kill()
	within(t, "the answer", a.Done())
	if r := a.Replies(); len(r) != 1 || !strings.Contains(r[0], "error: dial") {
		t.Errorf("replies %q", r)
	}
}

func TestAHeldCommandArrivesLateAndIsAnswered(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	a := s.p.Aim(Shot{Script: "rpush", Do: Hold, Delay: 30 * time.Millisecond})
	begun := time.Now()
	s.ok(s.rdb.RPush(t.Context(), s.key("list"), "v").Err())
	if took := time.Since(begun); took < 30*time.Millisecond || a.Hits() != 1 {
		t.Errorf("it took %v, %d hits", took, a.Hits())
	}
}

func TestALostCommandNeverArrives(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	a := s.p.Aim(Shot{Script: "rpush", Do: Lose})
	s.broken(s.rdb.RPush(t.Context(), s.key("list"), "lost").Err())
	within(t, "the hit", a.Done())
	s.ok(s.rdb.RPush(t.Context(), s.key("list"), "after").Err())
	if got := s.arrives(s.key("list")); got != "after" {
		t.Errorf("%q arrived", got)
	}
}

func TestAShotMayLookAtTheArguments(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	a := s.p.Aim(Shot{Script: "rpush", Do: Lose, If: func(args []string) bool { return args[len(args)-1] == "it" }})
	s.ok(s.rdb.RPush(t.Context(), s.key("list"), "another").Err())
	s.broken(s.rdb.RPush(t.Context(), s.key("list"), "it").Err())
	if a.Hits() != 1 {
		t.Errorf("%d hits, want 1", a.Hits())
	}
}

func TestACancelledShotLetsAllPass(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	a := s.p.Aim(Shot{Script: "ping", Times: 2, Do: DropReply})
	s.broken(s.rdb.Ping(t.Context()).Err())
	a.Cancel()
	s.ok(s.rdb.Ping(t.Context()).Err())
	within(t, "the end of the shot", a.Done())
	if a.Hits() != 1 {
		t.Errorf("%d hits, want 1", a.Hits())
	}
}

// A command whose connection breaks for another reason is not what the shot was
// for: the next one is.
func TestACommandThatDiedOtherwiseIsNoHit(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	a := s.p.Aim(Shot{Script: "blpop", Do: DropReply})
	popped := make(chan error, 1)
	go func() { popped <- s.rdb.BLPop(context.Background(), 20*time.Second, s.key("list")).Err() }()
	blocked := func() string { return s.direct.ClientList(t.Context()).Val() }
	for tick := time.NewTicker(time.Millisecond); !strings.Contains(blocked(), "cmd=blpop"); <-tick.C {
	}
	s.p.Cut()
	s.broken(within(t, "the end of the pop", popped))
	s.ok(s.p.Mend())
	s.ok(s.direct.RPush(t.Context(), s.key("list"), "v").Err())
	s.broken(s.rdb.BLPop(t.Context(), 20*time.Second, s.key("list")).Err())
	within(t, "the hit", a.Done())
}

// The names that are learned from the texts of Kelpie's scripts are their own,
// whatever stands in the comments of what is put before all of them.
func TestTheNamesOfKelpiesScriptsAreLearned(t *testing.T) {
	t.Parallel()
	n := NewNames(nil)
	for _, text := range []string{
		"-- put before all\n-- body: of a job\nlocal x = 1\n-- exchange: the hot path\n-- KEYS  1 jobs HASH\nreturn {}",
		"-- exchange: of two lines\n--   and more\nreturn {}",
	} {
		if got := n.learn(text); got != "exchange" {
			t.Errorf("the name is %q", got)
		}
	}
}
