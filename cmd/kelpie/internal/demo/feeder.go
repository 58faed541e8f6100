package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/node/webhook"
	"github.com/kelpiehq/kelpie/queue"
)

// space is the queue that the demo uses.
const space = queue.DefaultQueue

// posted is a webhook that Enqueue has accepted.
type posted struct {
	id     string
	number int       // at the receiver
	due    time.Time // by Redis, zero if it was not delayed
	plan   plan
}

// feeder enqueues webhooks until it is told to stop, and every letter at least
// once. It sends no webhook without delay while open ones are unfinished, so
// that slots stay free for the delayed ones.
type feeder struct {
	jobs      *queue.Client
	receiver  *receiver
	letters   []letter
	every     time.Duration // mean time between two webhooks
	open      int           // bound on the unfinished ones without delay
	delayed   float64       // share of delayed ones
	latestDue time.Duration // after the first webhook; then nothing is delayed any more
	rng       *rand.Rand

	mu     sync.Mutex
	posted []posted
}

// Delays are drawn from this span.
const shortestDelay, longestDelay = 2 * time.Second, 20 * time.Second

// newFeeder makes a feeder that suits three nodes of 10 workers: at most 12
// slots are in use, and 20 are left while a node is missing.
func newFeeder(jobs *queue.Client, r *receiver, letters []letter) *feeder {
	return &feeder{
		jobs: jobs, receiver: r, letters: letters,
		every: min(25*time.Millisecond, 24*time.Second/time.Duration(len(letters))),
		open:  12, delayed: 0.5, latestDue: 30 * time.Second,
		rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
}

// run feeds until ctx ends, or enough is closed and every letter was sent.
func (f *feeder) run(ctx context.Context, enough <-chan struct{}) error {
	begun := time.Now()
	mood := moodAt(float64(time.Second) / float64(f.every))
	once := 0 // accepted without delay
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(f.every/2 + time.Duration(f.rng.Int64N(int64(f.every)))):
		}
		if n >= len(f.letters) && isClosed(enough) {
			return nil
		}
		delay := f.delay(time.Since(begun))
		if delay == 0 && once-f.receiver.counts().doneOnce >= f.open {
			continue
		}
		if err := f.post(ctx, mood.plan(f.rng, f.letters[n%len(f.letters)], delay)); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		n++
		if delay == 0 {
			once++
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// delay draws the delay of the next webhook, 0 for none.
func (f *feeder) delay(elapsed time.Duration) time.Duration {
	longest := min(longestDelay, f.latestDue-elapsed)
	if longest <= shortestDelay || f.rng.Float64() >= f.delayed {
		return 0
	}
	return shortestDelay + time.Duration(f.rng.Int64N(int64(longest-shortestDelay)))
}

// post enqueues one webhook. Stalls spend attempts too, and two nodes are going
// to be killed: 20 attempts are enough for any plan.
func (f *feeder) post(ctx context.Context, p plan) error {
	number := f.receiver.expect(p)
	payload, err := webhook.Request{
		URL: f.receiver.url(number), Headers: map[string]string{"Demo-Event": p.letter.event},
		Body: p.letter.body, TimeoutMS: 10_000,
	}.Payload()
	if err != nil {
		return fmt.Errorf("webhook %s: %w", p.letter.event, err)
	}
	id, err := f.jobs.Enqueue(ctx, queue.Request{
		Kind: webhook.Kind.Name(), Payload: payload,
		JobOptions: queue.JobOptions{Queue: space, Delay: p.delay, MaxAttempts: 20, Timeout: 20 * time.Second},
	})
	if err != nil {
		return err
	}
	w := posted{id: id, number: number, plan: p}
	if p.delay > 0 {
		record, err := f.jobs.Job(ctx, space, id)
		if err != nil {
			return fmt.Errorf("due time: %w", err)
		}
		w.due = record.DueAt
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posted = append(f.posted, w)
	return nil
}

// book returns a copy of all that was accepted so far.
func (f *feeder) book() []posted {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]posted(nil), f.posted...)
}

// accepted returns how many were accepted so far.
func (f *feeder) accepted() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.posted)
}
