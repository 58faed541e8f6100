package sweeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

const (
	rosterEvery = time.Second // how often the queues and the condemned ones are listed
	sideBySide  = 4           // queues that are emptied at a time
)

// recover takes the jobs of dead sessions until ctx ends: of those in the ward
// at once, of those that somebody else condemned within a second.
func (t *term) recover(ctx context.Context) {
	var emptied map[string]bool // condemned, and taken care of; nil before the first look
	var listed time.Time
	failures := 0
	for t.goes(ctx, recovering) {
		if now := time.Now(); listed.IsZero() || now.Sub(listed) >= rosterEvery {
			emptied, listed = t.readRoster(ctx, emptied), now
		}
		var failed []string
		for _, session := range t.ward.take() {
			if t.empty(ctx, session) != nil {
				failed = append(failed, session)
			} else if emptied != nil {
				emptied[session] = true
			}
		}
		if len(failed) == 0 {
			failures = 0
			pause(ctx, rosterEvery, t.ward.wake)
			continue
		}
		pause(ctx, pauseAfter(failures), nil)
		failures++
		for _, session := range failed {
			t.ward.add(session)
		}
	}
}

// readRoster tells the agenda which queues there are, and puts the sessions that
// were condemned since the last look into the ward. The first look of a term
// finds those of a whole day: what one of them still holds is found by the first
// survey of each queue.
func (t *term) readRoster(ctx context.Context, emptied map[string]bool) map[string]bool {
	queues, condemned, err := t.s.o.Space.Roster(ctx)
	if err != nil {
		t.note(ctx, "read the roster", err)
		return emptied
	}
	t.s.trouble.over("read the roster")
	t.agenda.set(queues, time.Now())
	known := make(map[string]bool, len(condemned)) // anew: Redis forgets old ones, so do we
	for session := range condemned {
		switch {
		case emptied == nil || emptied[session]:
			known[session] = true
		case session != t.s.o.Session:
			t.ward.add(session)
		}
	}
	return known
}

var errNoQueues = errors.New("the queues are not known yet")

// empty takes what a dead session holds in all queues, and tells it in one line.
func (t *term) empty(ctx context.Context, session string) error {
	queues := t.agenda.queues()
	if len(queues) == 0 {
		return errNoQueues
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		sum  queue.Reclaimed
		errs []error
		slot = make(chan struct{}, sideBySide)
	)
	for _, q := range queues {
		slot <- struct{}{}
		wg.Go(func() {
			defer func() { <-slot }()
			got, err := t.emptyQueue(ctx, q, session)
			mu.Lock()
			defer mu.Unlock()
			add(&sum, got)
			errs = append(errs, err)
		})
	}
	wg.Wait()
	t.tellRecovered(session, sum)
	return errors.Join(errs...)
}

// emptyQueue marks the session gone first: after that it adds nothing, so the
// list of what it holds is complete.
func (t *term) emptyQueue(ctx context.Context, q, session string) (sum queue.Reclaimed, err error) {
	if err := t.reclaim(ctx, q, session, nil, &sum); err != nil {
		return sum, err
	}
	batch := make([]string, 0, queue.ReclaimBatch)
	for id, err := range t.s.o.Space.HeldBy(ctx, q, session) {
		if err != nil {
			t.note(ctx, "list held jobs", err)
			return sum, err
		}
		if batch = append(batch, id); len(batch) == queue.ReclaimBatch {
			if err := t.reclaim(ctx, q, session, batch, &sum); err != nil {
				return sum, err
			}
			batch = batch[:0]
		}
	}
	t.s.trouble.over("list held jobs")
	if len(batch) == 0 {
		return sum, nil
	}
	return sum, t.reclaim(ctx, q, session, batch, &sum)
}

// reclaim is one bounded step; it adds what moved to sum.
func (t *term) reclaim(ctx context.Context, q, session string, ids []string, sum *queue.Reclaimed) error {
	if !t.goes(ctx, recovering) {
		return context.Cause(ctx)
	}
	return t.under(ctx, "reclaim", func(epoch int64) error {
		got, err := t.s.o.Space.Reclaim(ctx, q, epoch, session, queue.NodeName(session), ids)
		if err != nil {
			return err
		}
		add(sum, got)
		t.s.count.reclaimed.Add(int64(got.Jobs()))
		for _, id := range got.DeadIDs {
			t.s.o.Log.Warn().Str("job", id).Str("queue", q).Str("of", queue.NodeName(session)).
				Str("reason", "stalled").Msg("job dead: its node died in its last attempt")
		}
		return nil
	})
}

func (t *term) tellRecovered(session string, sum queue.Reclaimed) {
	node, n := queue.NodeName(session), sum.Jobs()
	if n == 0 {
		t.s.o.Log.Debug().Str("of", node).Str("session", session).Msgf("nothing to recover of node %s", node)
		return
	}
	t.s.o.Log.Info().Str("of", node).Str("session", session).Int("jobs", n).
		Int("waiting", sum.Waiting).Int("delayed", sum.Delayed).Int("dead", sum.Dead).Int("cancelled", sum.Cancelled).
		Msgf("recovered %d jobs of node %s", n, node)
}

func add(sum *queue.Reclaimed, more queue.Reclaimed) {
	sum.Waiting += more.Waiting
	sum.Delayed += more.Delayed
	sum.Dead += more.Dead
	sum.Cancelled += more.Cancelled
}
