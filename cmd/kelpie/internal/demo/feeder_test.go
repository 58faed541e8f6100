package demo

import (
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/node/webhook"
	"github.com/kelpiehq/kelpie/queue"
)

// newTestFeeder feeds a miniredis, with a receiver that nobody serves.
func newTestFeeder(t *testing.T, letters ...letter) *feeder {
	t.Helper()
	s, err := openEmbedded("")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := queue.New(s.rdb, queue.Options{Prefix: "feeder"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := openReceiver()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.listener.Close()
		if err := jobs.Close(); err != nil {
			t.Error(err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	f := newFeeder(jobs, r, letters)
	f.every = time.Millisecond
	return f
}

func aLetter(body string) letter {
	return letter{event: "e", body: []byte(body), sum: sumOf([]byte(body))}
}

func TestTheFeederLeavesSlotsFree(t *testing.T) {
	t.Parallel()
	f := newTestFeeder(t, aLetter(`{ "n":18446744073709551615 }`), aLetter(`[]`))
	f.open = 3
	enough, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- f.run(t.Context(), enough) }()
	if err := await(t.Context(), func() (bool, error) { return f.accepted() >= 40, nil }); err != nil {
		t.Fatal(err)
	}
	close(enough)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	once := 0
	for i, p := range f.book() {
		if p.number != i || string(p.plan.letter.body) != string(f.letters[i%2].body) {
			t.Errorf("webhook %d is number %d with %q", i, p.number, p.plan.letter.body)
		}
		if p.plan.delay == 0 {
			once++
		}
		if wait := time.Until(p.due); p.due.IsZero() != (p.plan.delay == 0) || p.plan.delay > 0 && (p.plan.delay < shortestDelay || wait > longestDelay) {
			t.Errorf("webhook %d with a delay of %v is due in %v", i, p.plan.delay, wait)
		}
	}
	if once != f.open {
		t.Errorf("%d without delay were sent while none was finished, want %d", once, f.open)
	}
}

func TestTheFeederKeepsTheBytesAndTheDueTime(t *testing.T) {
	t.Parallel()
	const body = `{ "n":18446744073709551615, "s":"\u00e9 東" }`
	f := newTestFeeder(t, aLetter(body))
	if err := f.post(t.Context(), plan{letter: f.letters[0], delay: 10 * time.Second, then: taken}); err != nil {
		t.Fatal(err)
	}
	p := f.book()[0]
	record, err := f.jobs.Job(t.Context(), space, p.id)
	if err != nil || record.State != queue.Delayed || !record.DueAt.Equal(p.due) {
		t.Errorf("record %+v, %v, want it delayed until %v", record, err, p.due)
	}
	var r webhook.Request
	if err := r.UnmarshalJSON(record.Payload); err != nil || string(r.Body) != body || r.URL != f.receiver.url(0) || r.Headers["Demo-Event"] != "e" {
		t.Errorf("the node will send %+v, %v", r, err)
	}
}

func TestEveryLetterIsSentOnce(t *testing.T) {
	t.Parallel()
	var letters []letter
	for range 60 {
		letters = append(letters, aLetter("{}"))
	}
	f := newTestFeeder(t, letters...)
	f.open = 1000
	enough := make(chan struct{})
	close(enough) // from the start
	if err := f.run(t.Context(), enough); err != nil || f.accepted() != len(letters) {
		t.Errorf("run = %v after %d webhooks, want all %d", err, f.accepted(), len(letters))
	}
}

func TestNothingIsDelayedPastTheEnd(t *testing.T) {
	t.Parallel()
	f := newFeeder(nil, nil, []letter{{}})
	for _, elapsed := range []time.Duration{0, 5 * time.Second, 15 * time.Second, 27 * time.Second, 28 * time.Second, time.Hour} {
		for range 200 {
			if d := f.delay(elapsed); d != 0 && (d < shortestDelay || d > longestDelay || elapsed+d > f.latestDue) {
				t.Fatalf("after %v a delay of %v", elapsed, d)
			}
		}
	}
}
