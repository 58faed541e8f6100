package queue

import (
	"context"
	"encoding/json"
	"fmt"
)

// Kind is a typed handle on one kind of job: its name and how its input travels.
// It is a value without state, safe to share.
type Kind[In any] struct {
	name     string
	defaults JobOptions
}

// Define names a kind whose input is an In, encoded as JSON; an In of []byte
// travels as it is. defaults, at most one, hold for its jobs unless an enqueue
// says otherwise. A bad name is reported by the first use, not here, so that
// kinds can be package variables.
func Define[In any](name string, defaults ...JobOptions) Kind[In] {
	return Kind[In]{name: name, defaults: merge(defaults)}
}

// Name returns the name given to Define.
func (k Kind[In]) Name() string { return k.name }

// Enqueue adds one job and returns its id. It returns once Redis has stored the
// job; see Client.Enqueue for errors.
func (k Kind[In]) Enqueue(ctx context.Context, c *Client, in In, o ...JobOptions) (string, error) {
	r, err := k.Request(in, o...)
	if err != nil {
		return "", err
	}
	return c.Enqueue(ctx, r)
}

// EnqueueMany adds one job for each input and returns a result for each, in the
// same order.
func (k Kind[In]) EnqueueMany(ctx context.Context, c *Client, ins []In, o ...JobOptions) []Result {
	requests := make([]Request, 0, len(ins))
	results := make([]Result, len(ins))
	at := make([]int, 0, len(ins)) // where the results of requests belong
	for i, in := range ins {
		r, err := k.Request(in, o...)
		if err != nil {
			results[i].Err = err
			continue
		}
		requests, at = append(requests, r), append(at, i)
	}
	for i, r := range c.EnqueueMany(ctx, requests) {
		results[at[i]] = r
	}
	return results
}

// Request returns what Enqueue would send.
func (k Kind[In]) Request(in In, o ...JobOptions) (Request, error) {
	payload, err := encode(in)
	if err != nil {
		return Request{}, fmt.Errorf("kind %s: input cannot be encoded: %w%w", k.name, err, bad)
	}
	return Request{Kind: k.name, Payload: payload, JobOptions: merge(append([]JobOptions{k.defaults}, o...))}, nil
}

// Decode turns a payload into an In.
func (k Kind[In]) Decode(payload []byte) (in In, err error) {
	if raw, ok := any(&in).(*[]byte); ok {
		*raw = payload
		return in, nil
	}
	err = json.Unmarshal(payload, &in)
	return in, err
}

func encode(in any) ([]byte, error) {
	if raw, ok := in.([]byte); ok {
		return raw, nil
	}
	return json.Marshal(in)
}
