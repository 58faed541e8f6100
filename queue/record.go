package queue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// State is where a job is.
type State string

// The six places of a job. The last three are final.
const (
	Waiting   State = "waiting"
	Delayed   State = "delayed"
	Active    State = "active"
	Completed State = "completed"
	Dead      State = "dead"
	Cancelled State = "cancelled"
)

// States lists all of them in the order of a job's life.
var States = []State{Waiting, Delayed, Active, Completed, Dead, Cancelled}

// Record is all that Redis knows of a job.
type Record struct {
	ID, Kind, Queue string
	State           State
	Attempts        int // spent: failures and stalls
	Failures        int
	Stalls          int
	MaxAttempts     int
	Priority        int
	EnqueuedAt      time.Time // by Redis's clock
	DueAt           time.Time // next time while delayed, else the first one
	FinishedAt      time.Time // zero unless the state is final
	Timeout         time.Duration
	Retention       time.Duration
	Backoff         Backoff
	Payload         []byte    // nil in lists
	PayloadSize     int       // bytes
	Forgotten       bool      // only the header is left, since the id was chosen
	Errors          []Failure // newest first, at most 10
	ErrorCount      int       // in all
	Holder          string    // session that runs it, while active
	Fence           int64     // of that claim
	Broken          string    // why the stored body cannot be read
}

// Job returns one job of a queue. ErrNoJob: there is none with this id.
func (c *Client) Job(ctx context.Context, queue, id string) (Record, error) {
	if err := CheckName("queue", queue); err != nil {
		return Record{}, err
	}
	if err := CheckID(id); err != nil {
		return Record{}, err
	}
	pipe := c.rdb.TxPipeline() // one moment, so a job that moves is seen once
	body := pipe.HGet(ctx, c.keys.of(queue, "jobs"), id)
	tried := pipe.HGet(ctx, c.keys.of(queue, "tries"), id)
	token := pipe.HGet(ctx, c.keys.of(queue, "active"), id)
	scores := make([]*redis.FloatCmd, len(places))
	for i, p := range places {
		scores[i] = pipe.ZScore(ctx, c.keys.of(queue, p), id)
	}
	if err := fault(pipe.Exec(ctx)); err != nil {
		return Record{}, wrap("read", queue, id, err)
	}
	if body.Err() != nil {
		return Record{}, wrap("read", queue, id, ErrNoJob)
	}
	r, h := newRecord(queue, id, []byte(body.Val()), tried.Val())
	if token.Err() == nil {
		r.place(Active, 0, token.Val(), h)
		return r, nil
	}
	for i, z := range scores {
		if z.Err() == nil {
			r.place(State(places[i]), z.Val(), "", h)
			return r, nil
		}
	}
	return r, nil
}

// Find looks for a job in every queue. ErrNoJob: none has it.
func (c *Client) Find(ctx context.Context, id string) (Record, error) {
	if err := CheckID(id); err != nil {
		return Record{}, err
	}
	queues, err := c.QueueNames(ctx)
	if err != nil {
		return Record{}, err
	}
	pipe := c.rdb.Pipeline()
	found := make([]*redis.BoolCmd, len(queues))
	for i, q := range queues {
		found[i] = pipe.HExists(ctx, c.keys.of(q, "jobs"), id)
	}
	if len(queues) > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return Record{}, wrap("find", "", id, err)
		}
	}
	for i, q := range queues {
		if !found[i].Val() {
			continue
		}
		if r, err := c.Job(ctx, q, id); !errors.Is(err, ErrNoJob) {
			return r, err
		}
	}
	return Record{}, wrap("find", "", id, ErrNoJob)
}

func newRecord(queue, id string, body []byte, tried string) (Record, header) {
	h, payload, err := parseBody(body)
	r := Record{
		ID: id, Queue: queue, Kind: h.kind, MaxAttempts: h.maxAttempts, Priority: h.priority,
		Timeout: h.timeout, Retention: h.retention, Backoff: h.backoff,
		Payload: payload, PayloadSize: len(payload),
	}
	if err != nil {
		r.Broken, r.Payload, r.PayloadSize = err.Error(), body, len(body)
	} else {
		r.EnqueuedAt, r.DueAt = time.UnixMilli(h.enqueued).UTC(), time.UnixMilli(h.dueAt()).UTC()
	}
	if tried != "" {
		t := parseTries(tried)
		r.Attempts, r.Stalls, r.Failures = t.spent, t.stalls, t.spent-t.stalls
		r.Errors, r.ErrorCount = t.failures(), t.count
	}
	return r, h
}

// place says where the record was found.
func (r *Record) place(s State, score float64, token string, h header) {
	r.State = s
	switch s {
	case Delayed:
		r.DueAt = time.UnixMilli(int64(score)).UTC()
	case Dead:
		r.FinishedAt = time.UnixMilli(int64(score)).UTC()
	case Completed, Cancelled:
		kept, headerOnly := h.keep()
		r.FinishedAt, r.Forgotten = time.UnixMilli(int64(score)-kept).UTC(), headerOnly
	case Active:
		fence, session, _ := cutToken(token)
		r.Fence, r.Holder = parseInt(fence), session
	}
}
