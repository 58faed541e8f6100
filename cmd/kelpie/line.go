package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kelpiehq/kelpie/queue"
)

// maxLine is enough for a payload of full size as base64.
const maxLine = 2 * queue.DefaultMaxPayload

// lines reads a file line by line in bounded memory.
type lines struct {
	r     *bufio.Reader
	n     int   // number of the last line
	bytes int64 // read so far
	long  []byte
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 256<<10)} }

var errLongLine = fmt.Errorf("longer than %d bytes; a payload may have %d", maxLine, queue.DefaultMaxPayload)

// next returns the next line without its end; it is valid until the following
// call. errLongLine: the line was skipped, and the next call goes on behind it.
func (l *lines) next() ([]byte, error) {
	l.long = l.long[:0]
	l.n++
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		l.bytes += int64(len(part))
		if errors.Is(err, bufio.ErrBufferFull) || len(l.long) > 0 || tooLong {
			if tooLong = tooLong || len(l.long)+len(part) > maxLine; tooLong {
				l.long = l.long[:0]
			} else {
				l.long = append(l.long, part...)
				part = l.long
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
		}
		switch {
		case tooLong:
			return nil, errLongLine
		case err == nil || err == io.EOF && len(part) > 0:
			if l.n == 1 {
				part = bytes.TrimPrefix(part, []byte("\xef\xbb\xbf")) // a byte order mark is no data
			}
			return bytes.TrimRight(part, "\r\n"), nil
		}
		return nil, err
	}
}

// ready reports whether a whole line can be read without waiting.
func (l *lines) ready() bool {
	b, _ := l.r.Peek(l.r.Buffered())
	return bytes.IndexByte(b, '\n') >= 0
}

// decodeLine reads one job over the defaults of base. It is stricter than
// encoding/json: a name counts once, and exactly as it is spelt.
func decodeLine(line []byte, base queue.Request) (queue.Request, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return base, notObject(err)
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return base, notObject(err)
		}
		name := key.(string) // nothing else can be there
		if _, twice := fields[name]; twice {
			return base, fmt.Errorf("%s stands there twice", name)
		}
		if !slices.Contains(fieldNames, name) {
			return base, fmt.Errorf("unknown field %q: must be one of %s", clip(name), strings.Join(fieldNames, ", "))
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return base, notObject(err)
		}
		fields[name] = raw
	}
	if _, err := d.Token(); err != nil {
		return base, notObject(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return base, errors.New("something stands behind the JSON object")
	}
	return fill(base, fields)
}

func notObject(err error) error {
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return errors.New("must be one JSON object")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON object breaks off")
	case errors.As(err, &syntax):
		return fmt.Errorf("broken JSON at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("broken JSON: %w", err)
}

var fieldNames = []string{
	"kind", "queue", "payload", "payload_base64", "delay", "at", "id", "priority", "max_attempts", "timeout", "retention",
}

// fill puts the fields of a line into a request. The rules are those of the
// flags.
func fill(r queue.Request, fields map[string]json.RawMessage) (queue.Request, error) {
	for _, pair := range [][2]string{{"payload", "payload_base64"}, {"delay", "at"}} {
		if fields[pair[0]] != nil && fields[pair[1]] != nil {
			return r, fmt.Errorf("%s and %s: give one of them", pair[0], pair[1])
		}
	}
	if fields["delay"] != nil || fields["at"] != nil {
		r.Delay, r.At = 0, queue.Request{}.At
	}
	for _, name := range fieldNames {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		if err := fillOne(&r, name, raw); err != nil {
			return r, fmt.Errorf("%s %s: %w", name, clip(string(raw)), err)
		}
	}
	if r.Kind == "" {
		return r, errors.New("kind is missing")
	}
	return r, nil
}

func fillOne(r *queue.Request, name string, raw json.RawMessage) (err error) {
	switch name {
	case "payload":
		r.Payload = raw
		return nil
	case "priority":
		n, err := whole(raw, checkPriority)
		r.Priority = queue.Priority(n)
		return err
	case "max_attempts":
		r.MaxAttempts, err = whole(raw, checkAttempts)
		return err
	}
	if raw[0] != '"' {
		return errors.New("must be a string")
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	switch name {
	case "kind":
		r.Kind, err = s, rule(queue.CheckName(name, s))
	case "queue":
		r.Queue, err = s, rule(queue.CheckName(name, s))
	case "id":
		r.ID, err = s, rule(queue.CheckID(s))
	case "payload_base64":
		if r.Payload, err = base64.StdEncoding.Strict().DecodeString(s); err != nil {
			err = errors.New("must be base64 with padding")
		}
	case "delay":
		r.Delay, err = parseDuration(s)
	case "at":
		r.At, err = parseTime(s)
	case "timeout":
		r.Timeout, err = parsePositive(s)
	case "retention":
		r.Retention, err = parseDuration(s)
	}
	return err
}

// whole takes a JSON number without fraction or exponent.
func whole(raw json.RawMessage, check func(int64) error) (int, error) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		n = -1 // outside every rule here
	}
	return int(n), check(n)
}
