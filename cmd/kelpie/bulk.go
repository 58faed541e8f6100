package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kelpiehq/kelpie/queue"
)

// Bounds of one chunk: what is in memory, and on its way to Redis, at a time.
// Two more chunks may be in the making.
const (
	chunkLines = 1000
	chunkBytes = 4 << 20
)

// bulk stores a stream of lines chunk by chunk, while the next one is read.
type bulk struct {
	send    func(context.Context, []queue.Request) []queue.Result
	explain func(error) error
	base    queue.Request // what a line leaves out
	out     *output
	list    *listing
	errOut  io.Writer
	bar     bar

	stored, bad, last int   // jobs, lines that were not stored, last line that was dealt with
	fault             error // of Redis
}

// item is one line.
type item struct {
	line    int
	request queue.Request
	err     error // the line is bad
}

// chunk is some lines in the order of the input.
type chunk struct {
	items []item
	bytes int64 // read until here
	err   error // reading ended with it
}

// bulkView is the JSON of one line.
type bulkView struct {
	Line  int    `json:"line"`
	ID    string `json:"id,omitempty"`
	Error string `json:"error,omitempty"`
}

// run returns when the input ends, Redis or stdout fails, or ctx ends. The
// goroutine that reads may stay behind in a read that nothing can end; it is the
// last thing that this process does.
func (b *bulk) run(ctx context.Context, in io.Reader) error {
	chunks, stop := make(chan chunk), make(chan struct{})
	defer close(stop)
	go b.read(newLines(in), chunks, stop)
	for {
		select {
		case c := <-chunks:
			if err := b.store(ctx, c); err != nil {
				return err
			}
			if c.err != nil {
				return b.end(c.err)
			}
		case <-ctx.Done():
			return b.cut(context.Cause(ctx))
		}
	}
}

// read makes chunks of what is there, at most one line more than it can have
// without waiting: who pipes one line a minute into us has each stored at once.
func (b *bulk) read(l *lines, chunks chan<- chunk, stop <-chan struct{}) {
	for {
		c := b.chunk(l)
		select {
		case chunks <- c:
		case <-stop:
			return
		}
		if c.err != nil {
			return
		}
	}
}

func (b *bulk) chunk(l *lines) (c chunk) {
	size := 0
	for {
		line, err := l.next()
		c.bytes = l.bytes
		switch {
		case errors.Is(err, errLongLine):
			c.items = append(c.items, item{line: l.n, err: err})
		case err != nil:
			c.err = err
			return c
		case len(bytes.TrimSpace(line)) > 0:
			r, err := decodeLine(line, b.base)
			c.items = append(c.items, item{l.n, r, err})
			size += len(r.Payload)
		}
		if len(c.items) >= chunkLines || size >= chunkBytes || len(c.items) > 0 && !l.ready() {
			return c
		}
	}
}

// store sends the good lines of a chunk and tells what became of each. A flight
// that has begun is not cut short by a signal: then its outcome would be unknown.
func (b *bulk) store(ctx context.Context, c chunk) error {
	var requests []queue.Request
	for _, it := range c.items {
		if it.err == nil {
			requests = append(requests, it.request)
		}
	}
	results := b.send(context.WithoutCancel(ctx), requests)
	groups := faults{w: b.errOut, before: b.bar.clear}
	for _, it := range c.items {
		var res queue.Result
		if it.err == nil {
			res, results = results[0], results[1:]
		}
		b.tell(it, res, &groups)
	}
	groups.flush()
	err := b.out.flush()
	b.bar.set(c.bytes)
	switch {
	case err != nil:
		return b.cut(err)
	case b.fault != nil:
		return b.cut(nil)
	}
	return nil
}

// tell writes the id of a stored job to stdout, and what is wrong with another
// line to stderr.
func (b *bulk) tell(it item, res queue.Result, groups *faults) {
	b.last = it.line
	err := it.err
	if err == nil {
		err = b.own(res.Err)
	}
	if err != nil {
		b.bad++
		groups.add(it.line, err.Error())
	} else {
		b.stored++
	}
	switch {
	case b.out.json && err != nil:
		_ = b.list.add(bulkView{it.line, res.ID, err.Error()})
	case b.out.json:
		_ = b.list.add(bulkView{Line: it.line, ID: res.ID})
	case err == nil:
		_ = b.out.print(res.ID, "\n") // flush has the error
	}
}

// own says what is wrong with one line, in words without queue and id, and keeps
// a fault that is not the line's own.
func (b *bulk) own(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, queue.ErrExists):
		return queue.ErrExists
	case errors.Is(err, queue.ErrBadInput):
		return err
	}
	if b.fault == nil || errors.Is(err, queue.ErrUnknown) {
		b.fault = b.explain(err)
	}
	if errors.Is(err, queue.ErrUnknown) {
		return fmt.Errorf("it is not known whether the job was stored: %s", lastOf(err))
	}
	return b.explain(err)
}

// end is called at the end of the input.
func (b *bulk) end(err error) error {
	b.bar.clear()
	if b.out.json {
		if e := b.list.end(b.errOut, ""); e != nil {
			return b.cut(e)
		}
	}
	switch {
	case !errors.Is(err, io.EOF):
		return b.cut(badData("the input cannot be read: %w", plainPath(err)))
	case b.bad == 0:
		return nil
	case b.stored == 0:
		return badData("no job was stored: %s", b.failures())
	}
	return failed("%d jobs are stored; %s", b.stored, b.failures())
}

func (b *bulk) failures() string {
	if b.bad == 1 {
		return "the line named above is not"
	}
	return fmt.Sprintf("the %d lines named above are not", b.bad)
}

// cut is the end of a run that Redis, stdout or the input stopped.
func (b *bulk) cut(err error) error {
	b.bar.clear()
	if err == nil {
		err = b.fault
	}
	code := codeOf(err)
	if b.stored > 0 {
		code = exitFailed
	}
	rest := fmt.Sprintf("stopped behind line %d with %d jobs stored, the rest was not sent", b.last, b.stored)
	return &fault{err: fmt.Errorf("%w; %s", err, rest), code: code, hint: hintOf(err)}
}

// faults writes what is wrong with lines, neighbours with the same fault as one.
type faults struct {
	w           io.Writer
	before      func() // makes room for a line
	first, last int
	text        string
}

func (f *faults) add(line int, text string) {
	if f.text == text && line == f.last+1 {
		f.last = line
		return
	}
	f.flush()
	f.first, f.last, f.text = line, line, text
}

func (f *faults) flush() {
	if f.text != "" {
		f.before()
	}
	switch {
	case f.text == "":
	case f.first == f.last:
		fmt.Fprintf(f.w, "kelpie: line %d: %s\n", f.first, f.text)
	default:
		fmt.Fprintf(f.w, "kelpie: lines %d to %d: %s\n", f.first, f.last, f.text)
	}
	f.text = ""
}
