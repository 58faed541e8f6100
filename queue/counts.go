package queue

import (
	"context"
	"sort"
	"time"

	"github.com/redis/go-redis/v9"
)

// Totals only rise, as long as Redis keeps its data.
type Totals struct {
	Enqueued, Completed, Failed, Retried, Stalled, Dead, Cancelled, Stale int64
	Promoted, Revived, Dropped, Orphans, Strays, Claimed                  int64
}

// QueueInfo is a queue at one moment.
type QueueInfo struct {
	Name                                                 string
	Waiting, Delayed, Active, Dead, Completed, Cancelled int64
	Paused                                               bool
	OldestWaiting                                        time.Duration // since it was enqueued or due
	NextDue                                              time.Duration // until the first delayed job is due, negative if overdue; 0 without any
	Totals                                               Totals
}

// QueueNames returns the registered queues in alphabetical order.
func (c *Client) QueueNames(ctx context.Context) ([]string, error) {
	names, err := c.rdb.SMembers(ctx, c.keys.whole("queues")).Result()
	sort.Strings(names)
	return names, wrap("list queues", "", "", err)
}

// Queues describes every registered queue.
func (c *Client) Queues(ctx context.Context) ([]QueueInfo, error) {
	names, err := c.QueueNames(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]QueueInfo, 0, len(names))
	for len(names) > 0 {
		n := min(len(names), page)
		infos, err := c.describe(ctx, names[:n])
		if err != nil {
			return nil, wrap("describe", names[0], "", err)
		}
		out, names = append(out, infos...), names[n:]
	}
	return out, nil
}

// Queue describes one queue. ErrNoQueue: nobody ever used it.
func (c *Client) Queue(ctx context.Context, name string) (QueueInfo, error) {
	if err := CheckName("queue", name); err != nil {
		return QueueInfo{}, err
	}
	known, err := c.rdb.SIsMember(ctx, c.keys.whole("queues"), name).Result()
	if err != nil {
		return QueueInfo{}, wrap("describe", name, "", err)
	}
	if !known {
		return QueueInfo{}, wrap("describe", name, "", ErrNoQueue)
	}
	infos, err := c.describe(ctx, []string{name})
	if err != nil {
		return QueueInfo{}, wrap("describe", name, "", err)
	}
	return infos[0], nil
}

// counted are the commands whose replies make a QueueInfo.
type counted struct {
	sizes  map[State]*redis.IntCmd
	meta   *redis.MapStringStringCmd
	oldest *redis.Cmd
	next   *redis.ZSliceCmd
}

func (c *Client) describe(ctx context.Context, names []string) ([]QueueInfo, error) {
	if err := oldestScript.lua.Load(ctx, c.rdb).Err(); err != nil { // a pipeline cannot send the text when it must
		return nil, err
	}
	pipe := c.rdb.Pipeline()
	all := make([]counted, len(names))
	for i, q := range names {
		all[i] = counted{
			sizes:  map[State]*redis.IntCmd{Active: pipe.HLen(ctx, c.keys.of(q, "active"))},
			meta:   pipe.HGetAll(ctx, c.keys.of(q, "meta")),
			oldest: pipe.EvalSha(ctx, oldestScript.lua.Hash(), c.keys.list(q, oldestScript.keys)),
			next:   pipe.ZRangeWithScores(ctx, c.keys.of(q, "delayed"), 0, 0),
		}
		for _, p := range places {
			all[i].sizes[State(p)] = pipe.ZCard(ctx, c.keys.of(q, p))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	out := make([]QueueInfo, len(names))
	for i, q := range names {
		out[i] = all[i].info(q)
	}
	return out, nil
}

func (n counted) info(name string) QueueInfo {
	m := n.meta.Val()
	get := func(field string) int64 { return parseInt(m[field]) }
	q := QueueInfo{
		Name: name, Paused: m["paused"] != "",
		Waiting: n.sizes[Waiting].Val(), Delayed: n.sizes[Delayed].Val(), Active: n.sizes[Active].Val(),
		Dead: n.sizes[Dead].Val(), Completed: n.sizes[Completed].Val(), Cancelled: n.sizes[Cancelled].Val(),
		Totals: Totals{
			Enqueued: get("enqueued"), Completed: get("completed"), Failed: get("failed"), Retried: get("retried"),
			Stalled: get("stalled"), Dead: get("dead"), Cancelled: get("cancelled"), Stale: get("stale"),
			Promoted: get("promoted"), Revived: get("revived"), Dropped: get("dropped"),
			Orphans: get("orphans"), Strays: get("strays"), Claimed: get("claimed"),
		},
	}
	if r, err := asReply("oldest", n.oldest.Val()); err == nil {
		if r.str(2) != "" {
			q.OldestWaiting = max(time.Duration(r.int(1)-r.int(2))*time.Millisecond, 0)
		}
		if next := n.next.Val(); len(next) > 0 {
			q.NextDue = time.Duration(int64(next[0].Score)-r.int(1)) * time.Millisecond
		}
	}
	return q
}
