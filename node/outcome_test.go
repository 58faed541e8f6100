package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kelpiehq/kelpie/queue"
)

// broken errors, as handlers return them.
type (
	panicError  struct{}
	nilError    struct{ cause error }
	badMatch    struct{}
	coyStringer struct{}
)

func (panicError) Error() string   { panic("no text") }
func (e *nilError) Error() string  { return e.cause.Error() }
func (e *nilError) Unwrap() error  { return e.cause }
func (badMatch) Error() string     { return "bad match" }
func (badMatch) Is(error) bool     { panic("no match") }
func (coyStringer) String() string { panic("no string") }

func noMap() map[string]int { return nil }

func TestOutcome(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	returns := map[string]struct {
		handler  func(context.Context) error
		attempts int // spent
		state    queue.State
		reason   string
		text     string // part of the error kept
	}{
		"an error fails the attempt":                          {func(context.Context) error { return errWork }, 1, queue.Delayed, queue.ReasonFailed, "told to fail"},
		"C089 a panic fails the attempt":                      {func(context.Context) error { panic("boom") }, 1, queue.Delayed, queue.ReasonPanic, "panic: boom"},
		"C089 a panic with an error":                          {func(context.Context) error { panic(errWork) }, 1, queue.Delayed, queue.ReasonPanic, "panic: told to fail"},
		"C089 a panic with nil":                               {func(context.Context) error { panic(nil) }, 1, queue.Delayed, queue.ReasonPanic, "nil"},
		"C089 a nil map":                                      {func(context.Context) error { noMap()["a"] = 1; return nil }, 1, queue.Delayed, queue.ReasonPanic, "nil map"},
		"a panic with a value whose String panics":            {func(context.Context) error { panic(coyStringer{}) }, 1, queue.Delayed, queue.ReasonPanic, "panic"},
		"C090 runtime.Goexit fails the attempt":               {func(context.Context) error { goexit(); return nil }, 1, queue.Delayed, queue.ReasonPanic, "Goexit"},
		"an error whose Error panics":                         {func(context.Context) error { return panicError{} }, 1, queue.Delayed, queue.ReasonFailed, "panic"},
		"a typed nil whose methods panic":                     {func(context.Context) error { return (*nilError)(nil) }, 1, queue.Delayed, queue.ReasonPanic, "nil pointer"},
		"an error whose Is panics":                            {func(context.Context) error { return badMatch{} }, 1, queue.Delayed, queue.ReasonPanic, "no match"},
		"a huge error is cut":                                 {func(context.Context) error { return errors.New(strings.Repeat("ä", 1<<20)) }, 1, queue.Delayed, queue.ReasonFailed, "[cut]"},
		"an error that is no UTF-8":                           {func(context.Context) error { return errors.New("a\xff\x00b\n") }, 1, queue.Delayed, queue.ReasonFailed, "a\uFFFD"},
		"Discard goes to dead at once":                        {func(context.Context) error { return queue.Discard(errWork) }, 1, queue.Dead, queue.ReasonRefused, "told to fail"},
		"a wrapped Discard too":                               {func(context.Context) error { return fmt.Errorf("so: %w", queue.Discard(errWork)) }, 1, queue.Dead, queue.ReasonRefused, "so: told to fail"},
		"RetryIn waits as told":                               {func(context.Context) error { return queue.RetryIn(time.Hour, errWork) }, 1, queue.Delayed, queue.ReasonFailed, "told to fail"},
		"Snooze spends nothing":                               {func(context.Context) error { return queue.Snooze(time.Hour) }, 0, queue.Delayed, "", ""},
		"its context's error after the timeout is a time-out": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 1, queue.Delayed, queue.ReasonTimeout, "the time for this attempt is over"},
	}
	kinds := map[string]string{}
	h.start(h.config("n1"), func(n *Node) {
		for name, tt := range returns {
			kind := fmt.Sprintf("k%d", len(kinds))
			kinds[name] = kind
			n.handle(kind, func(ctx context.Context, _ *queue.Claim) error { return tt.handler(ctx) })
		}
	})
	for name, tt := range returns {
		t.Run(name, func(t *testing.T) {
			id := h.enqueue(kinds[name], "x", queue.JobOptions{Timeout: 2 * time.Second, Backoff: queue.Backoff{Base: time.Hour}})
			eventually(t, patience, "it ends", func() bool { s := h.job(id).State; return s == queue.Delayed || s == queue.Dead })
			r := h.job(id)
			if r.State != tt.state || r.Attempts != tt.attempts || r.Stalls != 0 {
				t.Errorf("%s after %d attempts, want %s after %d", r.State, r.Attempts, tt.state, tt.attempts)
			}
			if tt.reason == "" {
				return
			}
			if len(r.Errors) != 1 || r.Errors[0].Reason != tt.reason || r.Errors[0].Node != "n1" || r.Errors[0].Attempt != 1 {
				t.Fatalf("errors %+v, want one: %s", r.Errors, tt.reason)
			}
			if text := r.Errors[0].Error; !strings.Contains(text, tt.text) || !utf8.ValidString(text) || len(text) > 4<<10 {
				t.Errorf("error of %d bytes %.200q, want valid UTF-8 with %q", len(text), text, tt.text)
			}
		})
	}
	t.Run("the node took no harm", func(t *testing.T) {
		id := h.enqueue(kinds["Snooze spends nothing"], "x")
		eventually(t, patience, "a job runs", func() bool { return h.job(id).State == queue.Delayed })
	})
}

func TestWhatTheNodeStoppedIsHandedBack(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cause, err error
		want       queue.Verb
	}{
		"success counts, whatever the context":                {queue.ErrShutdown, nil, queue.VerbComplete},
		"success after the session was lost is sent, refused": {queue.ErrSessionLost, nil, queue.VerbComplete},
		"a shutdown":              {queue.ErrShutdown, context.Canceled, queue.VerbRelease},
		"a lost session":          {queue.ErrSessionLost, errWork, queue.VerbRelease},
		"a cancelled job":         {queue.ErrCancelled, context.Canceled, queue.VerbRelease},
		"a timeout is a failure":  {queue.ErrTimeout, context.DeadlineExceeded, queue.VerbRetry},
		"a panic in a shutdown":   {queue.ErrShutdown, &queue.PanicError{Value: "x"}, queue.VerbRelease},
		"an error without reason": {nil, errWork, queue.VerbRetry},
	}
	h := realHerd(t)
	c := h.claim(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := judge(c, "n1", tt.cause, tt.err); got.Verb != tt.want {
				t.Errorf("%v, want %v", got.Verb, tt.want)
			}
		})
	}
}

// claim takes a job as a session without a node.
func (h *herd) claim(t *testing.T) *queue.Claim {
	t.Helper()
	h.do(work{})
	s, err := h.client.Session(newSession("lone"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Exchange(context.Background(), queue.DefaultQueue, queue.Exchange{Want: 1})
	if err != nil || len(x.Claims) != 1 {
		t.Fatalf("%+v, %v: want a claim", x, err)
	}
	return x.Claims[0]
}

func TestBrokenBodyIsUndecodable(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	bodies := map[string]string{
		"no header at all":    "x",
		"empty":               "",
		"an unknown header":   "9 nonsense\npayload",
		"a payload of no use": "",
	}
	ids := map[string]string{}
	for name, body := range bodies {
		ids[name] = h.enqueue("work", "[]")
		if name != "a payload of no use" {
			h.rdb.HSet(context.Background(), h.prefix+":{default}:jobs", ids[name], body)
		}
	}
	h.startWorking(h.config("n1"))
	for name, id := range ids {
		t.Run(name, func(t *testing.T) {
			eventually(t, patience, "it is dead", func() bool { return h.job(id).State == queue.Dead })
			r := h.job(id)
			if len(r.Errors) != 1 || r.Errors[0].Reason != queue.ReasonUndecodable || strings.Contains(r.Errors[0].Error, queue.ErrTimeout.Error()) {
				t.Errorf("%+v, want one error: undecodable", r.Errors)
			}
		})
	}
	if n := len(h.ledger.entries()); n != 0 {
		t.Errorf("the handler ran %d times for bodies that cannot be read", n)
	}
}
