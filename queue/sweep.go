package queue

import (
	"context"
	"iter"
	"time"
)

// What the sweeper does. Every move names its epoch; a queue that has seen a
// higher one answers with a FencedError.

// Raise gives the holder of the sweeper lock a new epoch: higher than the last
// one and than seen. ErrLockLost: lockValue is not what the lock holds.
func (c *Client) Raise(ctx context.Context, lockValue string, seen int64) (int64, error) {
	r, err := raiseScript.run(ctx, c.rdb, c.keys.list(reserved, raiseScript.keys), []any{lockValue, seen})
	if err != nil {
		return 0, wrap("raise", "", "", err)
	}
	if r.word() != "OK" {
		return 0, wrap("raise", "", "", ErrLockLost)
	}
	return r.int(1), nil
}

// sweep calls a script whose reply may be FENCED.
func (c *Client) sweep(ctx context.Context, s *script, queue string, args []any) (reply, error) {
	r, err := s.run(ctx, c.rdb, c.keys.list(queue, s.keys), args)
	if err != nil {
		return nil, wrap(s.name, queue, "", err)
	}
	c.clock.saw(r.int(1))
	if r.word() == "FENCED" {
		return nil, wrap(s.name, queue, "", &FencedError{Seen: r.int(2)})
	}
	return r, nil
}

// Promoted is the answer to Promote.
type Promoted struct {
	Moved int
	Next  time.Duration // until the next job is due, 0 if one is due now; negative if there is none
}

// PromoteBatch is the most that one Promote moves.
const PromoteBatch = 100

// Promote moves due jobs to waiting, at most PromoteBatch.
func (c *Client) Promote(ctx context.Context, queue string, epoch int64) (Promoted, error) {
	r, err := c.sweep(ctx, promoteScript, queue, []any{epoch, PromoteBatch})
	if err != nil {
		return Promoted{}, err
	}
	p := Promoted{Moved: int(r.int(2)), Next: -1}
	if r.str(3) != "" {
		p.Next = max(time.Duration(r.int(3)-r.int(1))*time.Millisecond, 0)
	}
	return p, nil
}

// HeldBy walks the ids that a session holds in a queue.
func (c *Client) HeldBy(ctx context.Context, queue, session string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for e, err := range c.active(ctx, queue) {
			if err != nil || e.session == session {
				if !yield(e.id, err) {
					return
				}
			}
		}
	}
}

// Reclaimed says where the jobs of a dead session went.
type Reclaimed struct {
	Waiting, Delayed, Dead, Cancelled int
	DeadIDs                           []string
}

// Jobs returns how many moved.
func (r Reclaimed) Jobs() int { return r.Waiting + r.Delayed + r.Dead + r.Cancelled }

// ReclaimBatch is the most ids that one Reclaim takes.
const ReclaimBatch = 100

// Reclaim moves jobs that a dead session holds, and marks it gone in the queue
// first: call it without ids before listing what it holds. node is the name for
// the record. Ids that it does not hold are left alone. Large bodies take more
// than one step; with an error the Reclaimed are those of the steps before it.
func (c *Client) Reclaim(ctx context.Context, queue string, epoch int64, session, node string, ids []string) (Reclaimed, error) {
	var out Reclaimed
	for {
		args := []any{epoch, session, node}
		for _, id := range ids {
			args = append(args, id)
		}
		r, err := c.sweep(ctx, reclaimScript, queue, args)
		if err != nil {
			return out, err
		}
		out.add(r.list(2))
		looked := int(r.int(3))
		if looked >= len(ids) {
			return out, nil
		}
		ids = ids[max(looked, 1):] // one at least, whatever the answer says
	}
}

// add counts a list of ids and their new places.
func (r *Reclaimed) add(moved reply) {
	for i := 0; i+1 < len(moved); i += 2 {
		switch State(moved.str(i + 1)) {
		case Waiting:
			r.Waiting++
		case Delayed:
			r.Delayed++
		case Dead:
			r.Dead++
			r.DeadIDs = append(r.DeadIDs, moved.str(i))
		case Cancelled:
			r.Cancelled++
		}
	}
}

// MaxDead is how many dead jobs a queue keeps; older ones are dropped.
const MaxDead = 100_000

// TrimCursor says how far a trim has come through the queue's small hashes. The
// zero value starts at their beginning.
type TrimCursor [3]string

// Trimmed is the answer to Trim.
type Trimmed struct {
	Forgotten int      // ended jobs whose time is over, and those in Dropped
	Dropped   []string // ids that went because dead was full
	Swept     int      // marks, senders and minutes of long ago
	Next      TrimCursor
}

// Trim removes a bounded part of what nobody needs any more.
func (c *Client) Trim(ctx context.Context, queue string, epoch int64, from TrimCursor) (Trimmed, error) {
	r, err := c.sweep(ctx, trimScript, queue, []any{epoch, MaxDead, or(from[0], "0"), or(from[1], "0"), or(from[2], "0")})
	if err != nil {
		return Trimmed{}, err
	}
	out := Trimmed{Forgotten: int(r.int(2)), Swept: int(r.int(4))}
	for i := range r.list(3) {
		out.Dropped = append(out.Dropped, r.list(3).str(i))
	}
	for i := range out.Next {
		out.Next[i] = or(r.list(5).str(i), "0")
	}
	return out, nil
}
