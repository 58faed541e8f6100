package queue

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Holders returns the sessions that take part in a queue: those that may claim,
// and those that still hold a job whatever their mark says. Read it before the
// list of live sessions: a session registers before its first exchange, so a
// live holder is always found there.
func (c *Client) Holders(ctx context.Context, queue string) ([]string, error) {
	seen := map[string]bool{}
	for cursor := uint64(0); ; {
		page, next, err := c.rdb.HScan(ctx, c.keys.of(queue, "holders"), cursor, "", 1000).Result()
		if err != nil {
			return nil, wrap("audit", queue, "", err)
		}
		for i := 0; i+1 < len(page); i += 2 {
			if !strings.HasPrefix(page[i+1], "gone") {
				seen[page[i]] = true
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	for e, err := range c.active(ctx, queue) {
		if err != nil {
			return nil, err
		}
		if e.session != "" {
			seen[e.session] = true
		}
	}
	holders := make([]string, 0, len(seen))
	for s := range seen {
		holders = append(holders, s)
	}
	return holders, nil
}

// Sessions returns the live sessions and their beats (Redis ms).
func (c *Client) Sessions(ctx context.Context) (map[string]int64, error) {
	return c.scores(ctx, "sessions")
}

// CondemnedSessions returns the sessions that were condemned, and when.
func (c *Client) CondemnedSessions(ctx context.Context) (map[string]int64, error) {
	return c.scores(ctx, "condemned")
}

func (c *Client) scores(ctx context.Context, what string) (map[string]int64, error) {
	all, err := c.rdb.ZRangeWithScores(ctx, c.keys.whole(what), 0, -1).Result()
	if err != nil {
		return nil, wrap("read", "", "", err)
	}
	out := make(map[string]int64, len(all))
	for _, z := range all {
		out[z.Member.(string)] = int64(z.Score)
	}
	return out, nil
}

// Repaired counts what an audit mended.
type Repaired struct {
	Orphans int // ids without a body, removed
	Strays  int // bodies without a place, put into waiting
}

// auditSample is how many ids of each place an audit looks at.
const auditSample = 100

// Audit looks, where the number of bodies is not that of the ids in the six
// places, at some ids of each and mends what does not fit. It reads no body.
// Jobs that move while it looks are not mistaken for broken ones, since the
// repair looks again in one step.
func (c *Client) Audit(ctx context.Context, queue string, epoch int64) (Repaired, error) {
	sound, err := c.sound(ctx, queue)
	if err != nil || sound {
		return Repaired{}, wrap("audit", queue, "", err)
	}
	suspects, err := c.suspects(ctx, queue)
	if err != nil || len(suspects) == 0 {
		return Repaired{}, wrap("audit", queue, "", err)
	}
	var out Repaired
	for len(suspects) > 0 {
		n := min(len(suspects), ReclaimBatch)
		r, err := c.sweep(ctx, repairScript, queue, append([]any{epoch}, suspects[:n]...))
		if err != nil {
			return out, err
		}
		out.Orphans, out.Strays, suspects = out.Orphans+int(r.int(2)), out.Strays+int(r.int(3)), suspects[n:]
	}
	return out, nil
}

// places are the sorted sets among the six places of an id; active is a hash.
var places = []string{"waiting", "delayed", "dead", "completed", "cancelled"}

func (c *Client) sound(ctx context.Context, queue string) (bool, error) {
	pipe := c.rdb.TxPipeline()
	bodies, held := pipe.HLen(ctx, c.keys.of(queue, "jobs")), pipe.HLen(ctx, c.keys.of(queue, "active"))
	sizes := make([]*redis.IntCmd, len(places))
	for i, p := range places {
		sizes[i] = pipe.ZCard(ctx, c.keys.of(queue, p))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return false, err
	}
	sum := held.Val()
	for _, s := range sizes {
		sum += s.Val()
	}
	return sum == bodies.Val(), nil
}

// suspects returns ids of a random sample of bodies and of each place that do
// not have both.
func (c *Client) suspects(ctx context.Context, queue string) ([]any, error) {
	jobs := c.keys.of(queue, "jobs")
	pipe := c.rdb.Pipeline()
	some := []*redis.StringSliceCmd{pipe.HRandField(ctx, jobs, auditSample)}
	for _, p := range places {
		some = append(some, pipe.ZRandMember(ctx, c.keys.of(queue, p), auditSample), pipe.ZRange(ctx, c.keys.of(queue, p), 0, auditSample-1))
	}
	if err := fault(pipe.Exec(ctx)); err != nil {
		return nil, err
	}
	var ids []string
	for _, s := range some {
		ids = append(ids, s.Val()...)
	}
	pipe = c.rdb.Pipeline()
	bodies, held, placed := make([]*redis.BoolCmd, len(ids)), make([]*redis.BoolCmd, len(ids)), make([][]*redis.FloatCmd, len(ids))
	for i, id := range ids {
		bodies[i], held[i] = pipe.HExists(ctx, jobs, id), pipe.HExists(ctx, c.keys.of(queue, "active"), id)
		for _, p := range places {
			placed[i] = append(placed[i], pipe.ZScore(ctx, c.keys.of(queue, p), id))
		}
	}
	if err := fault(pipe.Exec(ctx)); err != nil {
		return nil, err
	}
	var out []any
	for i, id := range ids {
		found := held[i].Val()
		for _, z := range placed[i] {
			found = found || z.Err() == nil
		}
		if found != bodies[i].Val() {
			out = append(out, id)
		}
	}
	return out, nil
}
