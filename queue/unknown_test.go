package queue

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestC029: Redis stores the job, the reply never comes, the client sends the
// same turn again.
func TestC029AReplyIsLostAndTheJobIsThereOnce(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		c, p := s.through(Options{}, nil, every("evalsha", 3, loseReply))
		var wg sync.WaitGroup
		var mu sync.Mutex
		accepted := map[string]bool{}
		for i := range 60 {
			wg.Go(func() {
				o := JobOptions{Queue: q}
				if i%2 == 0 {
					o.ID = fmt.Sprint("chosen-", i)
				}
				id, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: o})
				if err != nil {
					t.Errorf("enqueue %d: %v", i, err)
				}
				mu.Lock()
				defer mu.Unlock()
				accepted[id] = true
			})
		}
		wg.Wait()
		for i := range 12 { // one by one: 3, 6, 9, ... lose their reply
			if _, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: fmt.Sprint("single-", i)}}); err != nil {
				t.Errorf("single %d: %v", i, err)
			}
		}
		if len(p.executed) == 0 {
			t.Fatal("no reply was lost")
		}
		if n := s.conserved(); n != 72 || len(accepted) != 60 || len(strings.Fields(s.waiting())) != 72 {
			t.Errorf("%d jobs, %d ids accepted; want 72 and 60", n, len(accepted))
		}
		if got := s.totals().Enqueued; got != 72 {
			t.Errorf("counted %d", got)
		}
	})
}

func TestC029ATimedOutReplyIsAskedForAgain(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		quick := func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond }
		c, p := s.through(Options{}, quick, on("evalsha", holdReply, 1, 2))
		id, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q}})
		if err != nil || s.conserved() != 1 || len(p.executed) != 2 {
			t.Errorf("%q, %v: %d replies held", id, err, len(p.executed))
		}
	})
}

// TestC030: the settlement of a failed attempt is executed and its reply lost;
// sent again it changes nothing.
func TestC030AFailureWhoseReplyIsLostIsWrittenOnce(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		c, p := s.through(Options{}, nil, on("evalsha", loseReply, 2, 4, 7, 8, 11, 12)) // settlements and claims, also their repeats
		n, err := c.Session("n-1")
		s.ok(err)
		epoch := s.epoch("n-9")
		s.adds("j")
		runs := 0
		for round := 0; s.state("j") != Dead; round++ {
			if round > 20 {
				t.Fatal("it never ends")
			}
			x, err := n.Exchange(s.ctx, q, Exchange{Want: 1})
			if IsUnknown(err) { // roll call: what was claimed in vain goes back
				_, err = n.Exchange(s.ctx, q, Exchange{})
				for IsUnknown(err) {
					_, err = n.Exchange(s.ctx, q, Exchange{})
				}
				s.ok(err)
				held, err := n.Held(s.ctx, q)
				s.ok(err)
				for id, token := range held {
					back, err := n.HandBack(s.ctx, q, id, token)
					s.ok(err)
					s.deliver(n, back)
				}
				continue
			}
			s.ok(err)
			for _, claim := range x.Claims {
				runs++
				s.deliver(n, claim.Settle("n", RetryIn(time.Second, errBroke)))
			}
			s.pass(time.Second)
			s.promote(epoch)
		}
		if len(p.executed) != 6 {
			t.Errorf("%d replies were lost, want 6", len(p.executed))
		}
		if r := s.record("j"); runs != 3 || r.Attempts != 3 || r.ErrorCount != 3 || s.conserved() != 1 {
			t.Errorf("%d runs, %d attempts, %d errors; want 3 each", runs, r.Attempts, r.ErrorCount)
		}
		if got := s.totals(); got.Failed != 3 || got.Retried != 2 || got.Dead != 1 || got.Stale != 0 {
			t.Errorf("totals %+v", got)
		}
	})
}

// deliver repeats a settlement until it is answered, as a node does.
func (s *space) deliver(n *Session, one *Settlement) {
	s.t.Helper()
	for range 10 {
		_, err := n.Exchange(s.ctx, q, Exchange{Settle: []*Settlement{one}})
		if err == nil {
			return
		}
		if !IsUnknown(err) {
			s.t.Fatal(err)
		}
		one.Again()
	}
	s.t.Fatal("no answer in ten tries")
}

// TestC032: contexts end at any time while replies come late; no command may
// read the reply of another.
func TestC032NobodyReadsTheReplyOfAnother(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		for i := range 50 {
			id := fmt.Sprint("job-", i)
			_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", Payload: payloadOf(id), JobOptions: JobOptions{Queue: q, ID: id}})
			s.ok(err)
		}
		quick := func(o *redis.Options) { o.ReadTimeout, o.PoolSize = 20*time.Millisecond, 2 }
		c, p := s.through(Options{}, quick, func(command string, n int) harm {
			switch {
			case n%7 == 3:
				return holdReply
			case n%11 == 5:
				return loseReply
			}
			return pass
		})
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 25 {
					id := fmt.Sprint("job-", (i*7+w*13)%50)
					ctx, cancel := context.WithTimeout(s.ctx, time.Duration(1+i%5)*10*time.Millisecond)
					if r, err := c.Job(ctx, q, id); err == nil && (r.ID != id || string(r.Payload) != string(payloadOf(id))) {
						t.Errorf("asked for %s, got %s with another payload", id, r.ID)
					}
					if i == 12 {
						p.letGo() // the answers held so far arrive at connections that nobody may read from
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if len(p.executed) < 5 {
			t.Errorf("only %d replies were late or lost", len(p.executed))
		}
	})
}

func payloadOf(id string) []byte {
	return fmt.Appendf(nil, "%s %x", id, sha256.Sum256([]byte(id)))
}

func TestPatienceEndsInAnUnknownResult(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("warm") // the script is known, so the lost replies are those of its runs
		c, p := s.through(Options{Patience: 200 * time.Millisecond}, nil, every("evalsha", 1, loseReply))
		_, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "j"}})
		if !errors.Is(err, ErrUnknown) || !IsUnknown(err) || len(p.executed) < 2 {
			t.Errorf("after %d tries: %v", len(p.executed), err)
		}
		s.wantWaiting("warm j") // it was stored, once
		c, _ = s.through(Options{Patience: 200 * time.Millisecond}, nil, every("evalsha", 1, loseAll))
		if _, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q}}); !errors.Is(err, ErrUnknown) {
			t.Errorf("never executed: %v", err)
		}
		s.wantWaiting("warm j")
		c, _ = s.through(Options{Patience: 200 * time.Millisecond}, nil, every("time", 1, loseReply))
		if _, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q}}); !errors.Is(err, ErrUnreachable) || IsUnknown(err) {
			t.Errorf("the question before it had no answer: %v, want a sure failure", err)
		}
	})
}

func TestATurnThatWasGivenUpIsNeverUsedForAnythingElse(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		c, p := s.through(Options{Patience: time.Nanosecond}, nil, on("evalsha", holdReply, 1))
		ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
		defer cancel()
		first := make(chan error, 1)
		go func() {
			_, err := c.Enqueue(ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "first"}})
			first <- err
		}()
		within(t, "the first command", p.executed)
		cancel()
		if err := within(t, "the caller", first); !errors.Is(err, ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after sending: %v", err)
		}
		p.letGo()
		if _, err := c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "second"}}); err != nil {
			t.Fatal(err)
		}
		s.wantWaiting("first second")
		if turn := strings.Fields(s.rdb.HGet(s.ctx, s.key("senders"), c.id).Val())[0]; turn != "2" {
			t.Errorf("the second has turn %s", turn)
		}
	})
}
