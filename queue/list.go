package queue

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// page is how many jobs a list reads in one step.
const page = 100

// Jobs walks the jobs of a queue in one state, without their payloads: waiting
// in the order in which they run, delayed by due time, the ended ones by the
// time of their end (completed and cancelled: when they will be forgotten), active
// in no order. It holds one page in memory. A job that moves meanwhile may be
// missed; none is shown twice unless it came back, or is active while the number
// of those changes much.
func (c *Client) Jobs(ctx context.Context, queue string, s State) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := CheckName("queue", queue); err != nil {
			yield(Record{}, err)
			return
		}
		if !slices.Contains(States, s) {
			yield(Record{}, fmt.Errorf("state %q: must be one of %v%w", clip(string(s), 20), States, bad))
			return
		}
		ids := c.byScore(ctx, queue, s)
		if s == Active {
			ids = c.byToken(ctx, queue)
		}
		for batch, err := range ids {
			if err == nil {
				batch, err = c.peek(ctx, queue, s, batch)
			}
			if err != nil {
				yield(Record{}, wrap("list", queue, "", err))
				return
			}
			for _, f := range batch {
				if !yield(f.record, nil) {
					return
				}
			}
		}
	}
}

// found is an id in its place, and its record once peek has read it.
type found struct {
	id, token string
	score     float64
	record    Record
}

// byScore pages through a sorted set. It goes on behind the last score and skips
// as many of that very score as it has shown, so jobs that leave do not shift
// the rest.
func (c *Client) byScore(ctx context.Context, queue string, s State) iter.Seq2[[]found, error] {
	return func(yield func([]found, error) bool) {
		from, skip := "-inf", int64(0)
		var last float64
		for {
			list, err := c.rdb.ZRangeByScoreWithScores(ctx, c.keys.of(queue, string(s)),
				&redis.ZRangeBy{Min: from, Max: "+inf", Offset: skip, Count: page}).Result()
			if err != nil {
				yield(nil, err)
				return
			}
			if len(list) == 0 {
				return
			}
			batch := make([]found, len(list))
			for i, z := range list {
				if batch[i] = (found{id: z.Member.(string), score: z.Score}); z.Score != last || from == "-inf" {
					last, skip = z.Score, 0
				}
				skip++
				from = strconv.FormatFloat(last, 'f', -1, 64)
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

func (c *Client) byToken(ctx context.Context, queue string) iter.Seq2[[]found, error] {
	return func(yield func([]found, error) bool) {
		var batch []found
		for e, err := range c.active(ctx, queue) {
			if err != nil {
				yield(nil, err)
				return
			}
			if batch = append(batch, found{id: e.id, token: e.token}); len(batch) == page {
				if !yield(batch, nil) {
					return
				}
				batch = nil
			}
		}
		if len(batch) > 0 {
			yield(batch, nil)
		}
	}
}

// peek reads the headers, in as many steps as the bodies need; an id without a
// body is left out.
func (c *Client) peek(ctx context.Context, queue string, s State, batch []found) ([]found, error) {
	var list reply
	for rest := batch; len(rest) > 0; rest = batch[len(list)/3:] {
		args := make([]any, len(rest))
		for i, f := range rest {
			args[i] = f.id
		}
		r, err := peekScript.run(ctx, c.rdb, c.keys.list(queue, peekScript.keys), args)
		if err != nil {
			return nil, err
		}
		records := r.list(2)
		if len(records) < 3 || len(records) > 3*len(rest) {
			return nil, fmt.Errorf("script peek: %d records for %d jobs", len(records)/3, len(rest))
		}
		list = append(list, records...)
	}
	out := batch[:0]
	for i, f := range batch {
		size := list.int(3*i + 1)
		if size < 0 {
			continue
		}
		record, h := newRecord(queue, f.id, []byte(list.str(3*i)+"\n"), list.str(3*i+2))
		record.Payload, record.PayloadSize = nil, int(size)
		record.place(s, f.score, f.token, h)
		f.record = record
		out = append(out, f)
	}
	return out, nil
}
