package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var errBroke = errors.New("it broke")

func TestRetriesComeAfterOneFourAndNineSeconds(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-1")
		s.add(JobOptions{ID: "j", MaxAttempts: 4})
		for attempt := 1; attempt <= 4; attempt++ {
			c := s.one(n)
			if c.Attempt != attempt || c.MaxAttempts != 4 {
				t.Fatalf("attempt %d of %d, want %d of 4", c.Attempt, c.MaxAttempts, attempt)
			}
			s.settle(n, c.Settle("n", errBroke))
			if attempt == 4 {
				break
			}
			wait := s.record("j").DueAt.Sub(s.now)
			least := time.Duration(attempt*attempt) * time.Second
			if wait < least || wait > least*11/10+time.Millisecond {
				t.Errorf("after attempt %d it waits %v, want %v and up to 10 %% more", attempt, wait, least)
			}
			s.pass(wait - time.Millisecond)
			if p := s.promote(epoch); p.Moved != 0 {
				t.Errorf("attempt %d comes a millisecond early", attempt+1)
			}
			s.pass(time.Millisecond)
			s.promote(epoch)
		}
		r := s.record("j")
		if r.State != Dead || r.Attempts != 4 || r.Failures != 4 || r.Stalls != 0 || r.ErrorCount != 4 || !r.FinishedAt.Equal(s.now) {
			t.Errorf("at the end %+v", r)
		}
		for i, f := range r.Errors {
			if f.Attempt != 4-i || f.Node != "n" || f.Reason != ReasonFailed || f.Error != "it broke" || f.At.IsZero() {
				t.Errorf("error %d is %+v", i, f)
			}
		}
		if got := s.totals(); got.Failed != 4 || got.Retried != 3 || got.Dead != 1 || got.Completed != 0 {
			t.Errorf("totals %+v", got)
		}
	})
}

func TestOnlyTheLastTenErrorsAreKeptAndEachIsBounded(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-1")
		s.add(JobOptions{ID: "j", MaxAttempts: 100})
		for i := 1; i <= 13; i++ {
			err := fmt.Errorf("error %d\n\x00\xff\"%s", i, strings.Repeat("é", 4000))
			s.settle(n, s.one(n).Settle("n", RetryIn(0, err)))
			s.promote(epoch)
		}
		r := s.record("j")
		if len(r.Errors) != 10 || r.ErrorCount != 13 || r.Attempts != 13 {
			t.Fatalf("%d errors kept of %d after %d attempts", len(r.Errors), r.ErrorCount, r.Attempts)
		}
		for i, f := range r.Errors {
			if want := fmt.Sprintf("error %d\n\x00", 13-i); !strings.HasPrefix(f.Error, want) || f.Attempt != 13-i {
				t.Errorf("error %d begins %q, want %q", i, f.Error[:12], want)
			}
			if len(f.Error) > maxErrorText || !utf8.ValidString(f.Error) || !strings.HasSuffix(f.Error, " [cut]") {
				t.Errorf("error %d has %d bytes, valid %v, end %q", i, len(f.Error), utf8.ValidString(f.Error), f.Error[len(f.Error)-9:])
			}
		}
	})
}

func TestOutcomesOfAHandler(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		for name, tt := range map[string]struct {
			err      error
			state    State
			wait     time.Duration
			attempts int
			reason   string
		}{
			"a snooze spends nothing":                    {Snooze(time.Hour), Delayed, time.Hour, 0, ""},
			"a snooze of nothing is due at once":         {Snooze(-time.Second), Delayed, 0, 0, ""},
			"a retry in an exact time":                   {RetryIn(7*time.Second, errBroke), Delayed, 7 * time.Second, 1, ReasonFailed},
			"a wish longer than the backoff":             {RetryAfter(time.Hour, errBroke), Delayed, time.Hour, 1, ReasonFailed},
			"a discarded job is dead at once":            {fmt.Errorf("wrapped: %w", Discard(errBroke)), Dead, 0, 1, ReasonRefused},
			"what cannot be decoded is dead at once":     {Undecodable(errBroke), Dead, 0, 1, ReasonUndecodable},
			"an overrun":                                 {RetryIn(time.Second, ErrTimeout), Delayed, time.Second, 1, ReasonTimeout},
			"a panic":                                    {RetryIn(time.Second, &PanicError{Value: "x"}), Delayed, time.Second, 1, ReasonPanic},
			"a wait over the limit is cut to 100 years":  {RetryIn(1<<63-1, errBroke), Delayed, maxWait, 1, ReasonFailed},
			"a snooze over the limit is cut as well":     {Snooze(1<<63 - 1), Delayed, maxWait, 0, ""},
			"an error whose text panics is a plain one":  {RetryIn(time.Second, badError{}), Delayed, time.Second, 1, ReasonFailed},
			"a discard without an error has a text, too": {Discard(nil), Dead, 0, 1, ReasonRefused},
		} {
			id := s.add(JobOptions{})
			if got := s.settle(n, s.one(n).Settle("n", tt.err)); got != "O" {
				t.Fatalf("%s: verdict %s", name, got)
			}
			r := s.record(id)
			if r.State != tt.state || r.Attempts != tt.attempts || r.State == Delayed && r.DueAt.Sub(s.now) != tt.wait {
				t.Errorf("%s: %s, %d attempts, in %v", name, r.State, r.Attempts, r.DueAt.Sub(s.now))
			}
			if reason := append(r.Errors, Failure{})[0].Reason; reason != tt.reason {
				t.Errorf("%s: reason %q, want %q", name, reason, tt.reason)
			}
		}
		s.conserved()
	})
}

type badError struct{}

func (badError) Error() string { panic("no text") }

func TestAReleaseSpendsNothingAndGoesToTheHead(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		s.adds("a", "b", "c")
		s.add(JobOptions{ID: "high", Priority: Priority(9)})
		got := s.claim(n, 3) // high a b
		s.settle(n, got[1].Released(), got[2].Released())
		s.wantWaiting("b a c")
		s.settle(n, got[0].Released())
		s.wantWaiting("high b a c")
		if c := s.one(n); c.ID != "high" || c.Attempt != 1 || c.Fence <= got[0].Fence {
			t.Errorf("handed back, then %s attempt %d fence %d after %d", c.ID, c.Attempt, c.Fence, got[0].Fence)
		}
		if got := s.totals(); got.Failed != 0 || got.Stalled != 0 {
			t.Errorf("totals %+v", got)
		}
	})
}

func TestAnUnservedKindWaitsLongerEachTimeAndSpendsNothing(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-1")
		s.adds("j")
		for i, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			c := s.one(n)
			if c.Attempt != 1 {
				t.Fatalf("round %d is attempt %d", i, c.Attempt)
			}
			s.settle(n, c.Unserved())
			if got := s.record("j").DueAt.Sub(s.now); got != time.Duration(want)*time.Second {
				t.Errorf("round %d waits %v, want %d s", i, got, want)
			}
			s.pass(time.Minute)
			s.promote(epoch)
		}
		s.settle(n, s.one(n).Settle("n", errBroke))
		s.pass(time.Minute)
		s.promote(epoch)
		s.settle(n, s.one(n).Unserved())
		if r := s.record("j"); r.Attempts != 1 || r.DueAt.Sub(s.now) != time.Second {
			t.Errorf("a failure in between starts the waits anew: %d attempts, %v", r.Attempts, r.DueAt.Sub(s.now))
		}
	})
}

func TestOnlyTheCurrentTokenSettles(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		old, young, stranger, epoch := s.session("n-1"), s.session("n-2"), s.session("n-4"), s.epoch("n-3")
		s.adds("j")
		lost := s.one(old)
		s.reclaim(epoch, "n-1")
		won := s.one(young)
		before := s.snapshot()
		for _, late := range []*Settlement{lost.Settle("n", nil), lost.Settle("n", errBroke), lost.Released(), lost.Unserved(),
			lost.Settle("n", Snooze(1)), lost.Settle("n", Discard(errBroke))} {
			if got := s.settle(old, late); got != "S" {
				t.Errorf("%v of the lost attempt: verdict %s", late.Verb, got)
			}
			if got := s.settle(stranger, late); got != "S" {
				t.Errorf("%v sent by another session: verdict %s", late.Verb, got)
			}
		}
		after := s.snapshot()
		for _, k := range []string{"jobs", "tries", "waiting", "delayed", "active", "dead", "completed", "cancelled"} {
			if before[k] != after[k] {
				t.Errorf("%s changed from %s to %s", k, before[k], after[k])
			}
		}
		if got := s.settle(young, won.Settle("n", nil)); got != "O" {
			t.Errorf("the current attempt: verdict %s", got)
		}
		if got := s.totals(); got.Stale != 12 || got.Completed != 1 {
			t.Errorf("totals %+v, want 12 stale", got)
		}
	})
}

func TestStaleIsNotCountedForWhatIsSentAgainOrTwice(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		s.adds("a", "b")
		got := s.claim(n, 2)
		a, b := got[0].Settle("n", nil), got[1].Settle("n", nil)
		if v := s.settle(n, a, b, a); v != "OOS" {
			t.Errorf("twice in a batch: %s", v)
		}
		again := got[0].Settle("n", nil)
		again.Again()
		if v := s.settle(n, again); v != "S" {
			t.Errorf("sent again after an unknown result: %s", v)
		}
		if got := s.totals(); got.Stale != 0 || got.Completed != 2 {
			t.Errorf("totals %+v, want nothing stale", got)
		}
		s.settle(n, b)
		if got := s.totals(); got.Stale != 1 {
			t.Errorf("totals %+v, want 1 stale", got)
		}
	})
}

func TestACancelMarkEndsTheAttemptWhateverItsOutcome(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n, epoch := s.session("n-1"), s.epoch("n-2")
		ends := map[string]func(c *Claim) *Settlement{
			"ok":    func(c *Claim) *Settlement { return c.Settle("n", nil) },
			"fails": func(c *Claim) *Settlement { return c.Settle("n", errBroke) },
			"back":  func(c *Claim) *Settlement { return c.Released() },
			"dies":  nil,
			"kept":  func(c *Claim) *Settlement { return c.Settle("n", ErrCancelled) },
		}
		for id := range ends {
			o := JobOptions{ID: id}
			if id == "kept" {
				o.Retention = time.Hour
			}
			s.add(o)
		}
		claims := s.claim(n, len(ends))
		for id := range ends {
			s.ok(s.rdb.SAdd(s.ctx, s.key("cancels"), id).Err())
		}
		if x := s.exchange(n, Exchange{}); len(x.Cancel) != len(ends) {
			t.Errorf("told to cancel %v, want all", x.Cancel)
		}
		if x := s.exchange(s.session("n-2"), Exchange{}); len(x.Cancel) != 0 {
			t.Errorf("a node that runs none was told to cancel %v", x.Cancel)
		}
		for _, c := range claims {
			if end := ends[c.ID]; end != nil && s.settle(n, end(c)) != "O" {
				t.Errorf("%s was refused", c.ID)
			}
		}
		if r := s.reclaim(epoch, "n-1"); r.Cancelled != 1 || r.Jobs() != 1 {
			t.Errorf("reclaimed %+v", r)
		}
		for id := range ends {
			s.wantState(id, Cancelled)
		}
		if r := s.record("kept"); r.Forgotten || len(r.Payload) == 0 {
			t.Errorf("its retention is not kept: %+v", r)
		}
		if got := s.totals(); got.Cancelled != int64(len(ends)) || got.Completed+got.Failed+got.Stalled != 0 {
			t.Errorf("totals %+v", got)
		}
		if left := s.rdb.SCard(s.ctx, s.key("cancels")).Val(); left != 0 {
			t.Errorf("%d marks are left", left)
		}
		s.conserved()
	})
}

func TestSettlementsOfOneExchangeAreBoundedByCountAndBytes(t *testing.T) {
	small, big := &Settlement{}, &Settlement{tries: strings.Repeat("x", 300<<10)}
	for name, tt := range map[string]struct {
		all  []*Settlement
		want int
	}{
		"none fit into none":                   {nil, 0},
		"small ones by count":                  {slices.Repeat([]*Settlement{small}, MaxSettle+1), MaxSettle},
		"big ones by bytes":                    {slices.Repeat([]*Settlement{big}, 10), 3},
		"one always goes, however big it is":   {[]*Settlement{{tries: strings.Repeat("x", 2<<20)}, small}, 1},
		"small ones behind big ones count too": {[]*Settlement{big, big, big, small, big}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Fit(tt.all); got != tt.want {
				t.Errorf("Fit = %d, want %d", got, tt.want)
			}
		})
	}
}
