package node

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// attempt is a claim that runs. Its outcome is decided once: by the handler's
// return, or by the node where the handler does not return in time. Its slot is
// taken until the handler's goroutine ends, whoever decided.
type attempt struct {
	claim   *queue.Claim
	began   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    context.CancelFunc // of the timeout
	decided atomic.Bool
	over    time.Time // when the patrol first saw the context ended; its own
}

// running are the attempts of one exchange loop.
type running struct {
	mu sync.Mutex
	// Each by itself: an id may come back while its old attempt still runs, and a
	// Redis that lost its last writes may give a token out twice.
	attempts map[*attempt]bool
}

func newRunning() *running { return &running{attempts: map[*attempt]bool{}} }

func (r *running) add(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[a] = true
}

func (r *running) remove(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, a)
}

func (r *running) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.attempts)
}

func (r *running) all() []*attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.attempts))
}

// cancelJob ends the context of what runs for a job id; true if that is news to
// some handler.
func (r *running) cancelJob(id string, cause error) (news bool) {
	for _, a := range r.all() {
		if a.claim.ID == id {
			news = news || a.cause() == nil
			a.cancel(cause)
		}
	}
	return news
}

// newAttempt starts the clock of an attempt.
func newAttempt(ctx context.Context, c *queue.Claim) *attempt {
	a := &attempt{claim: c, began: time.Now()}
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.ctx, a.stop = context.WithTimeoutCause(ctx, c.Timeout, queue.ErrTimeout)
	return a
}

// cause says why the attempt's context ended, or nil.
func (a *attempt) cause() error {
	if a.ctx.Err() == nil {
		return nil
	}
	return context.Cause(a.ctx)
}

// free releases the attempt's timer; no cause is added.
func (a *attempt) free() { a.stop(); a.cancel(nil) }
