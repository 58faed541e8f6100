package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestConcurrentCallsShareRoundTrips(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		c, p := s.through(Options{}, nil, on("evalsha", holdReply, 1))
		errs := make(chan error, 300)
		send := func(id string) {
			_, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: id}})
			errs <- err
		}
		go send("first")
		within(t, "the first command", p.executed) // while its reply is held, the others gather
		for i := range 200 {
			go send(fmt.Sprint("j", i%100)) // each id twice
		}
		for gathered := 0; gathered < 200; {
			l := c.lane(q)
			l.mu.Lock()
			gathered = len(l.waiting)
			l.mu.Unlock()
		}
		p.letGo()
		exists := 0
		for range 201 {
			switch err := within(t, "an outcome", errs); {
			case errors.Is(err, ErrExists):
				exists++
			case err != nil:
				t.Error(err)
			}
		}
		p.mu.Lock()
		calls := p.seen["evalsha"]
		p.mu.Unlock()
		if exists != 100 || calls > 3 || s.conserved() != 101 {
			t.Errorf("%d outcomes say exists, want 100; %d round trips", exists, calls)
		}
	})
}

func TestOrderIsKeptPerQueue(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		var all []Request
		for i := range 1203 { // more than two flights
			all = append(all, Request{Kind: "k", JobOptions: JobOptions{Queue: []string{q, "other"}[i%2], ID: fmt.Sprintf("%04d", i)}})
		}
		for i, r := range s.c.EnqueueMany(s.ctx, all) {
			if r.Err != nil || r.ID != fmt.Sprintf("%04d", i) {
				t.Fatalf("result %d: %+v", i, r)
			}
		}
		list := strings.Fields(s.waiting())
		if len(list) != 602 || !slices.IsSorted(list) {
			t.Errorf("%d jobs, sorted %v", len(list), slices.IsSorted(list))
		}
	})
}

func TestResultsBelongToTheirRequests(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("there")
		r := s.c.EnqueueMany(s.ctx, []Request{
			{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "a"}},
			{Kind: "bad kind", JobOptions: JobOptions{Queue: q, ID: "b"}},
			{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "there"}},
			{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "c", Delay: -1}},
			{Kind: "k", Payload: make([]byte, DefaultMaxPayload+1), JobOptions: JobOptions{Queue: q, ID: "d"}},
			{Kind: "k", JobOptions: JobOptions{Queue: "other", ID: "there"}},
			{Kind: "k"},
		})
		for i, want := range []error{nil, ErrBadInput, ErrExists, ErrBadInput, ErrTooLarge, nil, nil} {
			if !errors.Is(r[i].Err, want) || want == nil && r[i].Err != nil {
				t.Errorf("result %d: %v, want %v", i, r[i].Err, want)
			}
		}
		if r[6].ID == "" || r[0].ID != "a" {
			t.Errorf("ids %v", r)
		}
		s.wantWaiting("there a")
		k := Define[map[string]any]("typed", JobOptions{Queue: q})
		typed := k.EnqueueMany(s.ctx, s.c, []map[string]any{{"n": 1}, {"n": func() {}}, {"n": 2}})
		if typed[0].Err != nil || !errors.Is(typed[1].Err, ErrBadInput) || typed[2].Err != nil || typed[2].ID == "" {
			t.Errorf("typed results %v", typed)
		}
	})
}

func TestABatchIsBoundedByBytesToo(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		before := s.tap.calls.Load()
		var all []Request
		for range 9 {
			all = append(all, Request{Kind: "k", Payload: make([]byte, 400<<10), JobOptions: JobOptions{Queue: q}})
		}
		for _, r := range s.c.EnqueueMany(s.ctx, all) {
			s.ok(r.Err)
		}
		if n := s.tap.calls.Load() - before; n < 5 {
			t.Errorf("%d calls for 3.5 MiB in flights of 1 MiB", n)
		}
		if s.conserved() != 9 {
			t.Error("want 9 jobs")
		}
	})
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		ctx, cancel := context.WithCancelCause(s.ctx)
		cancel(errBroke)
		for range 50 {
			if _, err := s.c.Enqueue(ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q}}); !errors.Is(err, errBroke) || IsUnknown(err) || errors.Is(err, ErrUnreachable) {
				t.Fatalf("got %v", err)
			}
		}
		if n := s.conserved(); n != 0 {
			t.Errorf("%d jobs were stored", n)
		}
	})
}

func TestACommandThatWaitsForItsTurnCanBeTakenBack(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		c, p := s.through(Options{}, nil, on("evalsha", holdReply, 1))
		first, second := make(chan error, 1), make(chan error, 1)
		enqueue := func(ctx context.Context, id string, to chan error) {
			_, err := c.Enqueue(ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: id}})
			to <- err
		}
		go enqueue(s.ctx, "first", first)
		within(t, "the first command", p.executed)
		ctx, cancel := context.WithCancel(s.ctx)
		go enqueue(ctx, "second", second)
		cancel()
		if err := within(t, "the second caller", second); !errors.Is(err, context.Canceled) || IsUnknown(err) {
			t.Errorf("cancelled before sending: %v, want no doubt", err)
		}
		p.letGo()
		if err := within(t, "the first caller", first); err != nil {
			t.Error(err)
		}
		s.ok(c.Close())
		s.wantWaiting("first")
	})
}

func TestCloseWaitsForWhatFliesAndRefusesTheRest(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		c, p := s.through(Options{}, nil, on("evalsha", holdReply, 1))
		first, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "first"}})
			first <- err
		}()
		within(t, "the first command", p.executed)
		go func() { closed <- c.Close() }()
		<-c.closed
		if _, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q}}); !errors.Is(err, ErrClosed) || IsUnknown(err) {
			t.Errorf("after Close: %v", err)
		}
		select {
		case <-closed:
			t.Error("Close came back before the command in flight")
		default:
		}
		p.letGo()
		if err := within(t, "the command in flight", first); err != nil {
			t.Error(err)
		}
		if err := within(t, "Close", closed); err != nil {
			t.Error(err)
		}
		s.wantWaiting("first")
	})
}

func TestCloseAndEnqueueAtTheSameMoment(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		for round := range 30 {
			c, err := New(s.rdb, Options{Prefix: s.c.Prefix()})
			s.ok(err)
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					_, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: fmt.Sprint("q", i), ID: fmt.Sprint(round)}})
					if err != nil && !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
				})
			}
			wg.Go(func() { _ = c.Close() })
			wg.Wait()
			s.ok(c.Close())
		}
	})
}

func TestAQueueIsRegisteredAgainThatRedisHasLost(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("first")
		s.ok(s.rdb.Del(s.ctx, s.c.keys.whole("queues")).Err())
		l := s.c.lane(q)
		l.known = l.known.Add(-registeredFor) // nothing flies
		s.adds("second")
		if names, err := s.c.QueueNames(s.ctx); err != nil || len(names) != 1 {
			t.Errorf("registered are %v, %v", names, err)
		}
	})
}

func TestAClientWithABadPrefixIsRefused(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	for _, p := range []string{"a:b", "{x}", "cluster", "..", strings.Repeat("x", 101), "a b", "é"} {
		if _, err := New(rdb, Options{Prefix: p}); !errors.Is(err, ErrBadInput) || !strings.Contains(err.Error(), "prefix") {
			t.Errorf("prefix %q: %v", p, err)
		}
	}
}
