package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// LogEntry is what one call of a script changed in a queue, or in the sessions
// and the epoch of the whole space. The script wrote it in the same atomic step,
// so the order of the entries is the order of what happened.
type LogEntry struct {
	Index  int64     // place in the log, from 0
	At     time.Time // by Redis's clock, exact to the µs
	Script string    // its name: enqueue, exchange, ...
	Who    string    // session or client; "" for the sweeper's scripts and for condemn
	Turn   int64     // of Who; 0 in a log of the whole space
	Epoch  int64     // of the sweeper, in promote, reclaim, trim and repair; the new one in raise
	Moves  []LogMove // none: the queue has seen a new epoch, and nothing else changed
	Raw    string    // the text as Redis holds it
}

// LogMove is what happened to one job or session. Each kind of move uses the
// fields that logForms lists; the others are zero.
type LogMove struct {
	What    string // store, exists, join, settle, ...: a key of logForms
	ID      string // of the job; of the session in join, bye, gone, condemn and raise
	From    State  // "" is nowhere
	To      State  // "" is nowhere; a job that ended has its state here even if it was forgotten at once
	Fence   int64  // claim; settle, reclaim: of the token that the job had; stale: of the token that was shown
	Session string // of the same token
	Shown   int64  // settle: fence of the token that was shown, if that was another one than the job had
	Verb    string // settle, stale: a letter as in lua/exchange.lua, or X: it ended as cancelled
	Again   bool   // settle, stale: it was sent again after an unknown result, or came twice in one call; not counted as stale
	Due     int64  // ms by Redis's clock; where To is delayed, and of store, promote and reschedule
	Until   int64  // ms by Redis's clock: how long a job that ended stays known; 0: forgotten at once
	Spent   int    // attempts, as tries has them after the move: claim, settle, spentout, reclaim, revive
	Max     int    // store: attempts allowed
}

// logForm is how a kind of move is written: its name, then these fields, "-" for
// one that is empty. From and to hold where no field says otherwise.
type logForm struct {
	fields   string
	from, to State
}

var logForms = map[string]logForm{
	"store":      {fields: "id to due max"}, // a new job; due where a time was given
	"exists":     {fields: "id"},            // an enqueue was refused: the id is known
	"join":       {fields: "id"},            // the first exchange of a session with this queue
	"settle":     {"id to fence session verb spent due until shown", Active, ""},
	"stale":      {fields: "id fence session verb"}, // a settlement was refused
	"promote":    {"id due", Delayed, Waiting},
	"claim":      {"id fence session spent", Waiting, Active},
	"spentout":   {"id spent", Waiting, Dead},  // found at a claim: no attempt is left
	"later":      {"id due", Waiting, Delayed}, // a job with two stalls, put aside for a node without another
	"orphan":     {fields: "id from"},          // an id without a body was taken out of this place
	"stray":      {fields: "id", to: Waiting},  // a body without a place
	"bye":        {fields: "id"},               // the session said farewell
	"gone":       {fields: "id"},               // the session may claim here no more
	"reclaim":    {"id to fence session spent due until", Active, ""},
	"forget":     {fields: "id from"},       // its time is over
	"drop":       {"id to until", Dead, ""}, // dead was full; a chosen id stays known as completed
	"revive":     {"id spent", Dead, Waiting},
	"reschedule": {fields: "id from to due"},
	"condemn":    {fields: "id"}, // the session is dead for ever
	"raise":      {fields: "id"}, // the holder of the lock got a new epoch
}

// KeepLog switches the log of a queue on or off, or that of the whole space
// (sessions and epochs), which is called "cluster". It takes effect with the
// next call of a script, and an entry never depends on an earlier one. A log is
// for tests and chaos runs: it grows with every move and nothing trims it.
// Switched off it stays readable.
func (c *Client) KeepLog(ctx context.Context, queue string, on bool) error {
	if err := checkLog(queue); err != nil {
		return err
	}
	meta := c.keys.of(queue, "meta")
	if on {
		return wrap("keep log", queue, "", c.rdb.HSet(ctx, meta, "log", "1").Err())
	}
	return wrap("keep log", queue, "", c.rdb.HDel(ctx, meta, "log").Err())
}

func checkLog(queue string) error {
	if queue == reserved {
		return nil
	}
	return CheckName("queue", queue)
}

// ReadLog returns the entries of a log from index on, at most so many, and none
// behind its end; queue as in KeepLog. An entry that cannot be read ends the
// list with an error that names its index.
func (c *Client) ReadLog(ctx context.Context, queue string, from int64, most int) ([]LogEntry, error) {
	if err := checkLog(queue); err != nil {
		return nil, err
	}
	if from < 0 || most < 1 {
		return nil, fmt.Errorf("%d log entries from %d on: must be at least 1, from 0 or later%w", most, from, bad)
	}
	texts, err := c.rdb.LRange(ctx, c.keys.of(queue, "log"), from, from+int64(most)-1).Result()
	if err != nil {
		return nil, wrap("read log", queue, "", err)
	}
	entries := make([]LogEntry, 0, len(texts))
	for i, text := range texts {
		e, err := parseEntry(text)
		if err != nil {
			return entries, wrap("read log", queue, "", fmt.Errorf("entry %d: %w", from+int64(i), err))
		}
		e.Index = from + int64(i)
		entries = append(entries, e)
	}
	return entries, nil
}

// sweeping are the scripts whose entries have an epoch in the place of a turn.
var sweeping = map[string]bool{"promote": true, "reclaim": true, "trim": true, "repair": true, "raise": true}

// parseEntry reads what tell of lua/prelude.lua wrote.
func parseEntry(raw string) (LogEntry, error) {
	lines := strings.Split(raw, "\n")
	head := strings.Split(lines[0], " ")
	if len(head) != 4 {
		return LogEntry{}, fmt.Errorf("line %q: must be a script, a time, a sender and a number", clip(lines[0], 200))
	}
	e := LogEntry{Script: head[0], Raw: raw}
	if head[2] != "-" {
		e.Who = head[2]
	}
	us, err := strconv.ParseInt(head[1], 10, 64)
	n, err2 := strconv.ParseInt(head[3], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return LogEntry{}, fmt.Errorf("line %q: %w", clip(lines[0], 200), err)
	}
	if e.At = time.UnixMicro(us).UTC(); sweeping[e.Script] {
		e.Epoch = n
	} else {
		e.Turn = n
	}
	for _, line := range lines[1:] {
		m, err := parseMove(line)
		if err != nil {
			return LogEntry{}, fmt.Errorf("line %q: %w", clip(line, 200), err)
		}
		e.Moves = append(e.Moves, m)
	}
	return e, nil
}

func parseMove(line string) (LogMove, error) {
	values := strings.Split(line, " ")
	form, known := logForms[values[0]]
	fields := strings.Fields(form.fields)
	if !known || len(values) != 1+len(fields) {
		return LogMove{}, errors.New("must be a known move with the fields of its kind")
	}
	m := LogMove{What: values[0], From: form.from, To: form.to}
	for i, field := range fields {
		if err := m.set(field, values[1+i]); err != nil {
			return LogMove{}, fmt.Errorf("%s: %w", field, err)
		}
	}
	return m, nil
}

// set takes one field of a form.
func (m *LogMove) set(field, value string) (err error) {
	if value == "-" && field != "id" { // which a job may be called
		return nil
	}
	switch field {
	case "id":
		m.ID = value
	case "from":
		m.From = State(value)
	case "to":
		m.To = State(value)
	case "session":
		m.Session = value
	case "verb":
		m.Verb = strings.ToUpper(value)
		m.Again = m.Verb != value
	case "fence":
		m.Fence, err = strconv.ParseInt(value, 10, 64)
	case "shown":
		m.Shown, err = strconv.ParseInt(value, 10, 64)
	case "due":
		m.Due, err = strconv.ParseInt(value, 10, 64)
	case "until":
		m.Until, err = strconv.ParseInt(value, 10, 64)
	case "spent":
		m.Spent, err = strconv.Atoi(value)
	case "max":
		m.Max, err = strconv.Atoi(value)
	}
	return err
}
