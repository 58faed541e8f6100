package watch

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/work"
	"github.com/kelpiehq/kelpie/queue"
)

// Bounds of reading what is left.
const (
	idPage    = 1000
	triesPage = 200
	bodyPage  = 50 // bodies, which may be large
	readings  = 3  // of a queue that moves
)

// Final reads all that the given queues hold, and who takes part. Settled says
// that nothing waits, is delayed or active in any of them; Waited is the caller's
// to fill in. rdb and space are connections to the same Redis.
func Final(ctx context.Context, rdb redis.UniversalClient, space *queue.Client, queues []string) (*history.Final, error) {
	f := &history.Final{Settled: true, Queues: map[string]history.QueueFinal{}}
	for _, q := range queues {
		r := &reader{rdb: rdb, space: space, queue: q}
		held, err := r.atRest(ctx)
		if err != nil {
			return nil, err
		}
		f.Queues[q] = held
		for _, s := range []queue.State{queue.Waiting, queue.Delayed, queue.Active} {
			f.Settled = f.Settled && len(held.Places[string(s)]) == 0
		}
	}
	live, condemned, err := space.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	f.Sessions = slices.Sorted(maps.Keys(live))
	f.Condemned = slices.Sorted(maps.Keys(condemned))
	f.T = history.Now()
	return f, nil
}

// reader reads one queue.
type reader struct {
	rdb   redis.UniversalClient
	space *queue.Client
	queue string
}

// atRest reads the queue, again if it moved meanwhile.
func (r *reader) atRest(ctx context.Context) (held history.QueueFinal, err error) {
	for range readings {
		before, err := r.totals(ctx)
		if err != nil {
			return held, err
		}
		if held, err = r.read(ctx); err != nil {
			return held, err
		}
		if held.Totals, err = r.totals(ctx); err != nil || maps.Equal(before, held.Totals) {
			return held, err
		}
	}
	return held, nil
}

// totals are the counters; a queue that nobody used has none.
func (r *reader) totals(ctx context.Context) (map[string]int64, error) {
	info, err := r.space.Queue(ctx, r.queue)
	if errors.Is(err, queue.ErrNoQueue) {
		return map[string]int64{}, nil
	}
	if err != nil {
		return nil, err
	}
	return totals(info.Totals), nil
}

func (r *reader) read(ctx context.Context) (held history.QueueFinal, err error) {
	held = history.QueueFinal{
		Places: map[string][]string{}, Tokens: map[string]string{},
		Bodies: map[string]string{}, Sums: map[string]string{}, Tries: map[string]string{},
	}
	for _, s := range queue.States {
		if s == queue.Active {
			continue
		}
		ids := map[string]string{}
		if err := collect(ids, r.pairs(ctx, string(s), idPage, r.rdb.ZScan)); err != nil {
			return held, err
		}
		held.Places[string(s)] = slices.Sorted(maps.Keys(ids))
	}
	if err := collect(held.Tokens, r.pairs(ctx, string(queue.Active), idPage, r.rdb.HScan)); err != nil {
		return held, err
	}
	held.Places[string(queue.Active)] = slices.Sorted(maps.Keys(held.Tokens))
	if err := collect(held.Tries, r.pairs(ctx, "tries", triesPage, r.rdb.HScan)); err != nil {
		return held, err
	}
	if held.Cancels, err = r.cancels(ctx); err != nil {
		return held, err
	}
	for page, err := range r.pairs(ctx, "jobs", bodyPage, r.rdb.HScan) {
		if err != nil {
			return held, err
		}
		for id, body := range page {
			header, payload, _ := strings.Cut(body, "\n")
			if held.Bodies[id] = header; payload != "" {
				held.Sums[id] = work.Sum([]byte(payload))
			}
		}
	}
	return held, nil
}

func (r *reader) cancels(ctx context.Context) ([]string, error) {
	ids := map[string]bool{}
	for cursor := uint64(0); ; {
		page, next, err := r.rdb.SScan(ctx, r.space.Key(r.queue, "cancels"), cursor, "", idPage).Result()
		if err != nil {
			return nil, err
		}
		for _, id := range page {
			ids[id] = true
		}
		if cursor = next; cursor == 0 {
			return slices.Sorted(maps.Keys(ids)), nil
		}
	}
}

// scan is HSCAN or ZSCAN: both answer with pairs.
type scan func(ctx context.Context, key string, cursor uint64, match string, count int64) *redis.ScanCmd

// pairs walks a key. What stays there is seen, some of it maybe twice.
func (r *reader) pairs(ctx context.Context, what string, count int64, by scan) iter.Seq2[map[string]string, error] {
	return func(yield func(map[string]string, error) bool) {
		for cursor := uint64(0); ; {
			list, next, err := by(ctx, r.space.Key(r.queue, what), cursor, "", count).Result()
			if err != nil {
				yield(nil, err)
				return
			}
			page := map[string]string{}
			for i := 0; i+1 < len(list); i += 2 {
				page[list[i]] = list[i+1]
			}
			if !yield(page, nil) {
				return
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// collect keeps all pages.
func collect(to map[string]string, pages iter.Seq2[map[string]string, error]) error {
	for page, err := range pages {
		if err != nil {
			return err
		}
		maps.Copy(to, page)
	}
	return nil
}
