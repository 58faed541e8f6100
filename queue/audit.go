package queue

import (
	"context"
	"sort"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Holders are the sessions that take part in a queue: those that may claim, and
// those that still hold a job whatever their mark says.
type Holders struct {
	Queue    string
	Sessions []string
	Err      error // this queue could not be read; the others are not touched by it
}

// Holders reads the holders of some queues, in one round trip unless they are
// many. Read it before the list of live sessions: a session registers before its
// first exchange, so a live holder is always found there.
func (c *Client) Holders(ctx context.Context, queues []string) []Holders {
	out := make([]Holders, len(queues))
	seen := make([]map[string]bool, len(queues))
	var open []*holderScan
	for i, q := range queues {
		out[i].Queue, seen[i] = q, map[string]bool{}
		open = append(open, &holderScan{at: i, key: c.keys.of(q, "holders"), session: marked},
			&holderScan{at: i, key: c.keys.of(q, "active"), session: holding})
	}
	for len(open) > 0 {
		pipe := c.rdb.Pipeline()
		for _, s := range open {
			s.page = pipe.HScan(ctx, s.key, s.cursor, "", 1000)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		var left []*holderScan
		for _, s := range open {
			more, err := s.take(seen[s.at])
			if err != nil {
				out[s.at].Err = wrap("audit", queues[s.at], "", err)
			} else if more {
				left = append(left, s)
			}
		}
		open = left
	}
	for i := range out {
		for s := range seen[i] {
			out[i].Sessions = append(out[i].Sessions, s)
		}
	}
	return out
}

// holderScan walks one hash whose entries name sessions.
type holderScan struct {
	at      int
	key     string
	cursor  uint64
	page    *redis.ScanCmd
	session func(field, value string) string // "" for an entry that counts for nothing
}

func (s *holderScan) take(seen map[string]bool) (more bool, err error) {
	page, next, err := s.page.Result()
	if err != nil {
		return false, err
	}
	for i := 0; i+1 < len(page); i += 2 {
		if name := s.session(page[i], page[i+1]); name != "" {
			seen[name] = true
		}
	}
	s.cursor = next
	return next != 0, nil
}

func marked(session, turn string) string {
	if strings.HasPrefix(turn, "gone") {
		return ""
	}
	return session
}

func holding(_, token string) string {
	_, session, _ := cutToken(token)
	return session
}

// Sessions returns the live sessions and their beats, and the condemned ones and
// when that was (Redis ms), of one moment.
func (c *Client) Sessions(ctx context.Context) (live, condemned map[string]int64, err error) {
	pipe := c.rdb.TxPipeline()
	one := pipe.ZRangeWithScores(ctx, c.keys.whole("sessions"), 0, -1)
	two := pipe.ZRangeWithScores(ctx, c.keys.whole("condemned"), 0, -1)
	if err := fault(pipe.Exec(ctx)); err != nil {
		return nil, nil, wrap("read", "", "", err)
	}
	return scores(one.Val()), scores(two.Val()), nil
}

// Roster returns the registered queues in alphabetical order, and the condemned
// sessions and when that was (Redis ms), in one round trip.
func (c *Client) Roster(ctx context.Context) (queues []string, condemned map[string]int64, err error) {
	pipe := c.rdb.Pipeline()
	names := pipe.SMembers(ctx, c.keys.whole("queues"))
	dead := pipe.ZRangeWithScores(ctx, c.keys.whole("condemned"), 0, -1)
	if err := fault(pipe.Exec(ctx)); err != nil {
		return nil, nil, wrap("read", "", "", err)
	}
	queues = names.Val()
	sort.Strings(queues)
	return queues, scores(dead.Val()), nil
}

func scores(list []redis.Z) map[string]int64 {
	out := make(map[string]int64, len(list))
	for _, z := range list {
		out[z.Member.(string)] = int64(z.Score)
	}
	return out
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
