package queue

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// formatVersion is the version of the data in Redis, kept in the key format and
// at the start of each header.
const formatVersion = "1"

// A body is a header, a newline and the payload to the bit:
//
//	1 <kind> <max attempts> <priority> <enqueued ms>[ d<first due ms>][ c][ t<timeout ms>][ r<retention ms>][ b<backoff>]
//
// c marks an id that the caller chose. What equals a default is left out.

// header is what the first line of a body says.
type header struct {
	kind        string
	maxAttempts int
	priority    int
	enqueued    int64 // ms
	due         int64 // ms, 0 if none was given
	chosen      bool
	timeout     time.Duration
	retention   time.Duration
	backoff     Backoff
}

// head and tail are the parts of a header before and behind Redis's time.
func (r *Request) head() string {
	return formatVersion + " " + r.Kind + " " + strconv.Itoa(r.MaxAttempts) + " " + strconv.Itoa(*r.Priority)
}

func (r *Request) tail() string {
	if !r.chosen && r.Timeout == DefaultTimeout && r.Retention == 0 && r.Backoff == (Backoff{}) {
		return ""
	}
	var b strings.Builder
	if r.chosen {
		b.WriteString(" c")
	}
	if r.Timeout != DefaultTimeout {
		fmt.Fprintf(&b, " t%d", r.Timeout.Milliseconds())
	}
	if r.Retention > 0 {
		fmt.Fprintf(&b, " r%d", max(r.Retention.Milliseconds(), 1))
	}
	if s := r.Backoff.String(); s != "" {
		b.WriteString(" b" + s)
	}
	return b.String()
}

// parseBody splits a body; the payload shares its memory.
func parseBody(body []byte) (h header, payload []byte, err error) {
	line, payload, ok := bytes.Cut(body, []byte{'\n'})
	if !ok {
		return h, nil, fmt.Errorf("body of %d bytes: no header", len(body))
	}
	h, err = parseHeader(string(line))
	return h, payload, err
}

func parseHeader(line string) (h header, err error) {
	f := strings.Split(line, " ")
	if len(f) < 5 || f[0] != formatVersion {
		return h, fmt.Errorf("header %q: not of format %s", clip(line, 80), formatVersion)
	}
	h = header{kind: f[1], timeout: DefaultTimeout}
	var e1, e2, e3 error
	h.maxAttempts, e1 = strconv.Atoi(f[2])
	h.priority, e2 = strconv.Atoi(f[3])
	h.enqueued, e3 = strconv.ParseInt(f[4], 10, 64)
	wrong := h.maxAttempts < 1 || h.priority < 0 || h.priority > 9 || h.enqueued < 0
	if e1 != nil || e2 != nil || e3 != nil || wrong || CheckName("kind", h.kind) != nil {
		return h, fmt.Errorf("header %q: not understood", clip(line, 80))
	}
	for _, o := range f[5:] {
		if err := h.option(o); err != nil {
			return h, fmt.Errorf("header %q: option %q: not understood", clip(line, 80), o)
		}
	}
	return h, nil
}

func (h *header) option(o string) (err error) {
	if o == "c" {
		h.chosen = true
		return nil
	}
	if o == "" {
		return strconv.ErrSyntax
	}
	value := o[1:]
	switch o[0] {
	case 'd':
		h.due, err = strconv.ParseInt(value, 10, 64)
	case 't':
		h.timeout, err = parseMillis(value)
	case 'r':
		h.retention, err = parseMillis(value)
	case 'b':
		h.backoff, err = parseBackoff(value)
	default: // of a later minor version: not ours to refuse
	}
	return err
}

func parseMillis(s string) (time.Duration, error) {
	ms, err := strconv.ParseUint(s, 10, 42)
	return time.Duration(ms) * time.Millisecond, err
}

func parseInt(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, _ := strconv.ParseFloat(s, 64) // a score, or nothing
		return int64(f)
	}
	return n
}

// dueAt is the first due time.
func (h header) dueAt() int64 { return or(h.due, h.enqueued) }

// keep says how long (ms) a completed job stays known, and whether only its
// header does; lua/prelude.lua has the same rule for the other ends.
func (h header) keep() (ms int64, headerOnly bool) {
	if h.chosen {
		ms = idMemory.Milliseconds()
	}
	return max(ms, h.retention.Milliseconds()), h.chosen && h.retention == 0
}

// idMemory is how long an id that a caller chose stays known after the end.
const idMemory = 10 * time.Minute
