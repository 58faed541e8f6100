package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Redis's own limits.
const (
	mostBulk  = 512 << 20
	mostParts = 1 << 20
)

var errNotRESP = errors.New("not RESP")

// readValue reads one value of RESP, of either version, as it was sent.
func readValue(r *bufio.Reader) ([]byte, error) {
	var raw []byte
	for parts := 1; parts > 0; parts-- {
		start := len(raw)
		var err error
		if raw, err = readLine(r, raw); err != nil {
			return nil, err
		}
		line := raw[start:]
		switch line[0] {
		case '+', '-', ':', '_', '#', ',', '(':
		case '$', '=', '!':
			n, err := count(line, mostBulk)
			if err != nil {
				return nil, err
			}
			if n < 0 {
				break
			}
			if raw, err = readBytes(r, raw, n+2); err != nil {
				return nil, err
			}
		case '*', '~', '>', '%', '|':
			n, err := count(line, mostParts)
			if err != nil {
				return nil, err
			}
			if line[0] == '%' || line[0] == '|' {
				n *= 2
			}
			if line[0] == '|' {
				n++ // what it describes follows
			}
			parts += max(n, 0)
		default:
			return nil, fmt.Errorf("%w: %.40q", errNotRESP, line)
		}
	}
	return raw, nil
}

// readCommand reads one command as it was sent: a list, or a plain line as
// somebody types it.
func readCommand(r *bufio.Reader) ([]byte, error) {
	first, err := r.Peek(1)
	if err != nil {
		return nil, err
	}
	if first[0] == '*' {
		return readValue(r)
	}
	return readLine(r, nil)
}

// readLine appends a line, with its end.
func readLine(r *bufio.Reader, raw []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		raw = append(raw, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return raw, err
		}
		if len(raw) > mostBulk {
			return nil, fmt.Errorf("%w: a line without an end", errNotRESP)
		}
	}
}

// readBytes appends n bytes. It grows with what really comes.
func readBytes(r *bufio.Reader, raw []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, 1<<20)
		at := len(raw)
		raw = slices.Grow(raw, step)[:at+step]
		if _, err := io.ReadFull(r, raw[at:]); err != nil {
			return nil, err
		}
		n -= step
	}
	return raw, nil
}

func count(line []byte, most int) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil || n > most {
		return 0, fmt.Errorf("%w: %.40q", errNotRESP, line)
	}
	return n, nil
}

// words returns the first words of a command that readCommand returned, at most
// so many.
func words(raw []byte, most int) []string {
	if len(raw) == 0 {
		return nil
	}
	if raw[0] != '*' {
		var plain []string
		for _, w := range bytes.Fields(raw) {
			plain = append(plain, string(w))
		}
		return plain[:min(len(plain), most)]
	}
	line, rest, _ := bytes.Cut(raw, []byte("\n"))
	n, err := count(line, mostParts)
	if err != nil || n <= 0 {
		return nil
	}
	list := make([]string, 0, min(n, most))
	for len(list) < min(n, most) {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if len(line) == 0 || line[0] != '$' {
			return list
		}
		size, err := count(line, mostBulk)
		if err != nil || size < 0 || size+2 > len(rest) {
			return list
		}
		list = append(list, string(rest[:size]))
		rest = rest[size+2:]
	}
	return list
}

// gist returns what a reply says in a word: the first word of a list or a
// string, a number, or "error: ..." for an error.
func gist(reply []byte) string {
	for len(reply) > 0 {
		line, rest, _ := bytes.Cut(reply, []byte("\r\n"))
		switch {
		case len(line) == 0:
			return ""
		case line[0] == '-':
			return "error: " + string(line[1:])
		case line[0] == '*' && len(rest) > 0:
			reply = rest
			continue
		case line[0] == '$' && len(rest) > 0:
			line, _, _ = bytes.Cut(rest, []byte("\r\n"))
			return string(line)
		}
		return string(line[1:])
	}
	return ""
}
