package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kelpiehq/kelpie/queue"
)

// jobHead is the JSON of a job up to its payload.
type jobHead struct {
	ID          string      `json:"id"`
	Kind        string      `json:"kind"`
	Queue       string      `json:"queue"`
	State       queue.State `json:"state"`
	Attempts    int         `json:"attempts"`
	Failures    int         `json:"failures"`
	Stalls      int         `json:"stalls"`
	MaxAttempts int         `json:"max_attempts"`
	Priority    int         `json:"priority"`
	EnqueuedAt  moment      `json:"enqueued_at"`
	DueAt       moment      `json:"due_at"`
	FinishedAt  moment      `json:"finished_at"`
}

// failureView is one failed attempt.
type failureView struct {
	Attempt int    `json:"attempt"`
	At      moment `json:"at"`
	Node    string `json:"node"`
	Reason  string `json:"reason"`
	Error   string `json:"error"`
}

func headOf(r queue.Record) jobHead {
	return jobHead{
		ID: r.ID, Kind: r.Kind, Queue: r.Queue, State: r.State,
		Attempts: r.Attempts, Failures: r.Failures, Stalls: r.Stalls,
		MaxAttempts: r.MaxAttempts, Priority: r.Priority,
		EnqueuedAt: moment{r.EnqueuedAt}, DueAt: moment{r.DueAt}, FinishedAt: moment{r.FinishedAt},
	}
}

func failuresOf(r queue.Record) []failureView {
	out := make([]failureView, len(r.Errors))
	for i, f := range r.Errors {
		out[i] = failureView{f.Attempt, moment{f.At}, f.Node, f.Reason, f.Error}
	}
	return out
}

// jobJSON is one whole job. The payload stands in it byte for byte: if it is
// JSON as payload, else as payload_base64. The encoder would compact it.
func jobJSON(r queue.Record) (json.RawMessage, error) {
	head, err := encode(headOf(r))
	if err != nil {
		return nil, err
	}
	failures, err := encode(failuresOf(r))
	if err != nil {
		return nil, err
	}
	name, payload := "payload", r.Payload
	if r.Broken != "" || !utf8.Valid(payload) || !json.Valid(payload) {
		name = "payload_base64"
		if payload, err = encode(r.Payload); err != nil { // a []byte travels as base64
			return nil, err
		}
	}
	return joinJSON(head, name, payload, failures), nil
}

func joinJSON(head []byte, name string, payload, failures []byte) json.RawMessage {
	out := make([]byte, 0, len(head)+len(payload)+len(failures)+32)
	out = append(out, head[:len(head)-1]...)
	out = append(out, `,"`+name+`":`...)
	out = append(out, payload...)
	out = append(out, `,"errors":`...)
	out = append(out, failures...)
	return append(out, '}')
}

// jobItem is a job in a list: without its payload, which would make a list as
// heavy as the queue.
type jobItem struct {
	jobHead
	PayloadSize int           `json:"payload_size"`
	Errors      []failureView `json:"errors"`
}

var jobColumns = []string{"ID", "QUEUE", "KIND", "STATE", "PRIO", "ATTEMPTS", "WHEN", "SIZE", "LAST ERROR"}

func jobRow(r queue.Record) []string {
	last := ""
	if len(r.Errors) > 0 {
		last = shorten(r.Errors[0].Reason+": "+r.Errors[0].Error, 60)
	}
	return []string{
		r.ID, r.Queue, r.Kind, string(r.State), strconv.Itoa(r.Priority),
		fmt.Sprintf("%d/%d", r.Attempts, r.MaxAttempts), moment{whenOf(r)}.String(), strconv.Itoa(r.PayloadSize), last,
	}
}

// whenOf is the time that matters in a state: of the end, of the next attempt,
// or of the start of waiting.
func whenOf(r queue.Record) time.Time {
	switch {
	case !r.FinishedAt.IsZero():
		return r.FinishedAt
	case r.State == queue.Delayed:
		return r.DueAt
	}
	return r.EnqueuedAt
}

// shorten cuts at a rune's border.
func shorten(s string, runes int) string {
	n := 0
	for i := range s {
		if n++; n > runes {
			return s[:i] + "…"
		}
	}
	return s
}

// previewBytes is how much of a payload a person is shown.
const previewBytes = 1 << 10

// jobText is one job for people.
func jobText(w io.Writer, r queue.Record) {
	line := func(name, value string) { fmt.Fprintf(w, "%-13s%s\n", name, oneLine(value)) }
	line("id", r.ID)
	line("kind", r.Kind)
	line("queue", r.Queue)
	line("state", stateText(r))
	line("attempts", fmt.Sprintf("%d of %d spent (%d failures, %d stalls)", r.Attempts, r.MaxAttempts, r.Failures, r.Stalls))
	line("priority", strconv.Itoa(r.Priority))
	line("timeout", r.Timeout.String())
	line("retention", r.Retention.String())
	line("enqueued at", moment{r.EnqueuedAt}.String())
	line("due at", moment{r.DueAt}.String())
	line("finished at", moment{r.FinishedAt}.String())
	line("payload", payloadText(r))
	for i, f := range r.Errors {
		name := ""
		if i == 0 {
			name = fmt.Sprintf("errors (%d)", r.ErrorCount)
		}
		line(name, fmt.Sprintf("%s attempt %d on %s, %s: %s", moment{f.At}, f.Attempt, f.Node, f.Reason, shorten(f.Error, 300)))
	}
}

func stateText(r queue.Record) string {
	switch {
	case r.State == queue.Active:
		return "active on " + r.Holder + " with fence " + strconv.FormatInt(r.Fence, 10)
	case r.Broken != "":
		return string(r.State) + ", and its body cannot be read: " + r.Broken
	}
	return string(r.State)
}

func payloadText(r queue.Record) string {
	switch {
	case r.Forgotten:
		return "(gone: the job has ended)"
	case len(r.Payload) == 0:
		return "(empty)"
	case !utf8.Valid(r.Payload) || bytes.ContainsFunc(r.Payload, isBinary):
		return fmt.Sprintf("(%d bytes that are no text; --json prints them)", len(r.Payload))
	}
	text := strings.ToValidUTF8(string(r.Payload[:min(len(r.Payload), previewBytes)]), "")
	if len(text) < len(r.Payload) {
		text += fmt.Sprintf("… (%d bytes in all; --json prints them)", len(r.Payload))
	}
	return text
}

func isBinary(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) }
