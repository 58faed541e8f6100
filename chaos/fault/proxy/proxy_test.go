package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

func TestWhatPassesIsNotChanged(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				want := fmt.Sprintf("%d/%d/%s", i, j, strings.Repeat("\r\n$x", j))
				if got, err := s.rdb.Echo(t.Context(), want).Result(); err != nil || got != want {
					t.Errorf("echo = %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestPipelinesLargeValuesAndTransactionsPass(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	large := strings.Repeat("0123456789abcdef", 200_000)
	s.ok(s.rdb.Set(t.Context(), s.key("large"), large, 0).Err())
	if got := s.rdb.Get(t.Context(), s.key("large")).Val(); got != large {
		t.Errorf("%d bytes came back, want %d", len(got), len(large))
	}
	cmds, err := s.rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range 5000 {
			p.Incr(t.Context(), s.key("n"))
		}
		return nil
	})
	s.ok(err)
	for i, c := range cmds {
		if got := c.(*redis.IntCmd).Val(); got != int64(i+1) {
			t.Fatalf("reply %d is %d", i, got)
		}
	}
	_, err = s.rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.RPush(t.Context(), s.key("list"), "a", "b")
		p.LRange(t.Context(), s.key("list"), 0, -1)
		return nil
	})
	s.ok(err)
}

func TestABlockingPopGetsWhatIsPushedLater(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	got := make(chan string, 1)
	go func() {
		v, _ := s.rdb.BLPop(context.Background(), 20*time.Second, s.key("list")).Result()
		got <- strings.Join(v, " ")
	}()
	s.ok(s.rdb.LPush(t.Context(), s.key("list"), "v").Err())
	if v := within(t, "the pop", got); v != s.key("list")+" v" {
		t.Errorf("popped %q", v)
	}
}

func TestSubscribersGetTheirMessages(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	sub := s.rdb.Subscribe(t.Context(), s.key("a"), s.key("b"))
	defer sub.Close()
	for range 2 {
		_, err := sub.Receive(t.Context())
		s.ok(err)
	}
	s.ok(s.rdb.Publish(t.Context(), s.key("b"), "hello").Err())
	if m := within(t, "the message", sub.Channel()); m.Payload != "hello" {
		t.Errorf("message %v", m)
	}
}

func TestPlainLinesAreCommandsToo(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	c, err := net.Dial("tcp", s.p.Addr())
	s.ok(err)
	defer c.Close()
	_, err = c.Write([]byte("\r\n*0\r\nPING\r\n*1\r\n$4\r\nPING\r\n"))
	s.ok(err)
	s.ok(c.SetReadDeadline(time.Now().Add(20 * time.Second)))
	buf := make([]byte, 14)
	for n := 0; n < len(buf); {
		m, err := c.Read(buf[n:])
		s.ok(err)
		n += m
	}
	if string(buf) != "+PONG\r\n+PONG\r\n" {
		t.Errorf("answer %q", buf)
	}
}

func TestACutResetsAndRefusesUntilItIsMended(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	popped := make(chan error, 1)
	waits := s.p.Aim(Shot{Script: "blpop", Do: Hold})
	go func() { popped <- s.rdb.BLPop(context.Background(), 20*time.Second, s.key("list")).Err() }()
	within(t, "the pop to be on its way", waits.Done())
	s.p.Cut()
	s.broken(within(t, "the end of the pop", popped))
	if c, err := net.Dial("tcp", s.p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial = %v, %v, want it refused", c, err)
	}
	s.p.Cut() // twice is once
	s.ok(s.p.Mend())
	s.ok(s.p.Mend())
	s.ok(s.rdb.Ping(t.Context()).Err())
}

func TestMendSaysThatTheAddressWasTaken(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.p.Cut()
	l, err := net.Listen("tcp", s.p.Addr())
	s.ok(err)
	defer l.Close()
	if err := s.p.Mend(); err == nil || !strings.Contains(err.Error(), s.p.Addr()) {
		t.Errorf("Mend = %v", err)
	}
}

func TestAProxyThatHasEndedIsNotMended(t *testing.T) {
	t.Parallel()
	p, err := Listen("127.0.0.1:0", func() string { return "" }, NewNames(nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := p.Mend(); err == nil {
		t.Error("mended")
	}
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Error("it still listens")
	}
}

func TestAnAddressThatIsTakenIsAnError(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	if _, err := Listen(s.p.Addr(), func() string { return "" }, NewNames(nil)); err == nil {
		t.Error("Listen took it")
	}
}

func TestAWayUpThatIsBlockedDeliversLateEvenForOneWhoHasGone(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.ok(s.rdb.Ping(t.Context()).Err())
	s.p.SetUp(Way{Blocked: true})
	s.impatient(func(ctx context.Context) error { return s.rdb.RPush(ctx, s.key("list"), "late").Err() })
	s.ok(s.rdb.Close())
	s.nothing(s.key("list"))
	s.p.SetUp(Way{})
	if got := s.arrives(s.key("list")); got != "late" {
		t.Errorf("%q arrived", got)
	}
}

func TestAWayUpThatLosesNeverDelivers(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.ok(s.rdb.Ping(t.Context()).Err())
	s.p.SetUp(Way{Blocked: true, Lost: true})
	pushed := make(chan error, 1)
	go func() { pushed <- s.rdb.RPush(context.Background(), s.key("list"), "lost").Err() }()
	s.impatient(func(ctx context.Context) error { return s.rdb.RPush(ctx, s.key("list"), "lost too").Err() })
	s.p.SetUp(Way{})
	s.ok(s.rdb.RPush(t.Context(), s.key("list"), "after").Err())
	err := within(t, "the push that was lost or early enough", pushed)
	if got := s.arrives(s.key("list")); err != nil && got != "after" {
		t.Errorf("%q arrived, want only what came after", got)
	}
}

func TestAWayDownThatIsBlockedExecutesAndSaysNothing(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.ok(s.rdb.Ping(t.Context()).Err())
	s.p.SetDown(Way{Blocked: true})
	s.impatient(func(ctx context.Context) error { return s.rdb.RPush(ctx, s.key("list"), "done").Err() })
	if got := s.arrives(s.key("list")); got != "done" {
		t.Errorf("%q arrived", got)
	}
}

func TestAnAnswerThatWasHeldComesWhenTheWayIsOpen(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.ok(s.rdb.Ping(t.Context()).Err())
	s.p.SetDown(Way{Blocked: true})
	answered := make(chan error, 1)
	go func() { answered <- s.rdb.RPush(context.Background(), s.key("list"), "patient").Err() }()
	s.arrives(s.key("list"))
	select {
	case err := <-answered:
		t.Errorf("an answer passed: %v", err)
	default:
	}
	s.p.SetDown(Way{})
	s.ok(within(t, "the answer", answered))
}

func TestADelayIsAddedToEachReplyAndPipelinesKeepTheirPace(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.ok(s.rdb.Ping(t.Context()).Err())
	const up, down = 30 * time.Millisecond, 20 * time.Millisecond
	s.p.SetUp(Way{Delay: up})
	s.p.SetDown(Way{Delay: down})
	begun := time.Now()
	s.ok(s.rdb.Ping(t.Context()).Err())
	if took := time.Since(begun); took < up+down {
		t.Errorf("a ping took %v, want at least %v", took, up+down)
	}
	begun = time.Now()
	_, err := s.rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range 200 {
			p.Ping(t.Context())
		}
		return nil
	})
	s.ok(err)
	if took := time.Since(begun); took > 100*(up+down) {
		t.Errorf("200 pings in a pipeline took %v", took)
	}
}

func TestWhenRedisIsGoneConnectionsBreakAndLaterOnesWork(t *testing.T) {
	t.Parallel()
	server := redistest.Dedicated(t)
	s := settingOn(t, server)
	s.ok(s.rdb.Ping(t.Context()).Err())
	server.Kill()
	s.broken(s.rdb.Ping(t.Context()).Err())
	s.broken(s.rdb.Ping(t.Context()).Err())
	server.Restart()
	s.ok(s.rdb.Ping(t.Context()).Err())
}

func TestEachConnectionAsksAnewWhereRedisIs(t *testing.T) {
	t.Parallel()
	a, b := redistest.Dedicated(t), redistest.Dedicated(t)
	now := make(chan string, 2)
	now <- a.Addr()
	now <- b.Addr()
	p, err := Listen("127.0.0.1:0", func() string { return <-now }, NewNames(nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	for _, server := range []*redistest.Server{a, b} {
		rdb := client(t, p.Addr())
		if err := rdb.Set(t.Context(), "here", server.Addr(), 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got := server.Client(t).Get(t.Context(), "here").Val(); got != server.Addr() {
			t.Errorf("%s has %q", server.Addr(), got)
		}
	}
}

func TestTheEndOfTheProxyEndsItsConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	p, err := Listen("127.0.0.1:0", server.Addr, NewNames(nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	rdb := client(t, p.Addr())
	waits := p.Aim(Shot{Script: "blpop", Do: Hold})
	popped := make(chan error, 1)
	go func() { popped <- rdb.BLPop(context.Background(), 20*time.Second, redistest.Prefix(t)).Err() }()
	within(t, "the pop to be on its way", waits.Done())
	cancel()
	if err := within(t, "the end of the proxy", ended); err != nil {
		t.Error(err)
	}
	if err := within(t, "the end of the pop", popped); err == nil {
		t.Error("the pop got an answer")
	}
}

func BenchmarkSet(b *testing.B) {
	server := redistest.Shared(b)
	for name, addr := range map[string]string{"straight to Redis": server.Addr(), "by a proxy": run(b, server.Addr(), NewNames(nil)).Addr()} {
		b.Run(name, func(b *testing.B) {
			rdb := client(b, addr)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := rdb.Set(b.Context(), "k", "v", 0).Err(); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
