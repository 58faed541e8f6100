package demo

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kelpiehq/kelpie/queue"
)

//go:embed sample.jsonl
var sample []byte

// letter is what one webhook carries.
type letter struct {
	event string
	body  []byte // delivered byte for byte
	sum   [sha256.Size]byte
}

// Limits of an input.
const (
	maxEvent   = 100      // characters
	maxBody    = 1 << 19  // bytes: with address and headers it stays below the limit of a job
	maxLine    = 1 << 20  // bytes
	maxInput   = 64 << 20 // bytes
	maxLetters = 1500     // more would not end within the minute
	maxFaults  = 5        // bad lines that are named
)

// loadLetters reads the file, or the sample if path is empty.
func loadLetters(path string) ([]letter, error) {
	if path == "" {
		return readLetters("sample", bytes.NewReader(sample))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Code: exitData, Err: fmt.Errorf("input: %w", err)}
	}
	defer f.Close()
	return readLetters(path, f)
}

// readLetters reads one JSON object a line and names every line that is none.
func readLetters(name string, r io.Reader) ([]letter, error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxInput+1))
	lines.Buffer(nil, maxLine)
	var letters []letter
	var faults []string
	number, size := 0, 0
	for lines.Scan() {
		number++
		size += len(lines.Bytes()) + 1
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		l, err := parseLetter(lines.Bytes())
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s line %d: %v", name, number, err))
			continue
		}
		letters = append(letters, l)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		faults = append(faults, fmt.Sprintf("%s line %d: must be at most %d bytes", name, number+1, maxLine))
	case err != nil:
		return nil, &Error{Code: exitData, Err: fmt.Errorf("%s line %d: %w", name, number+1, err)}
	case size > maxInput:
		faults = append(faults, fmt.Sprintf("%s: must be at most %d bytes", name, maxInput))
	case len(letters) > maxLetters:
		faults = append(faults, fmt.Sprintf("%s: %d webhooks, must be at most %d", name, len(letters), maxLetters))
	case len(letters) == 0 && len(faults) == 0:
		faults = append(faults, name+`: holds no webhook; a line is {"event": "order.created", "payload": {...}}`)
	}
	if len(faults) > 0 {
		if more := len(faults) - maxFaults; more > 0 {
			faults = append(faults[:maxFaults], fmt.Sprintf("and %d more", more))
		}
		return nil, &Error{Code: exitData, Err: fmt.Errorf("%s\nnothing was started", strings.Join(faults, "\n"))}
	}
	return letters, nil
}

// parseLetter reads a line and keeps the payload's bytes as they stand.
func parseLetter(line []byte) (letter, error) {
	var in struct {
		Event   *string         `json:"event"`
		Payload json.RawMessage `json:"payload"`
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return letter{}, notALetter(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return letter{}, errors.New("must be one JSON object and nothing after it")
	}
	switch {
	case in.Event == nil:
		return letter{}, errors.New(`"event" is missing`)
	case len(*in.Event) > maxEvent || queue.CheckID(*in.Event) != nil:
		return letter{}, fmt.Errorf("event %.100q: must be 1 to %d printable ASCII characters without space", *in.Event, maxEvent)
	case in.Payload == nil:
		return letter{}, errors.New(`"payload" is missing`)
	case len(in.Payload) > maxBody:
		return letter{}, fmt.Errorf("payload of %d bytes: must be at most %d", len(in.Payload), maxBody)
	}
	body := bytes.Clone(in.Payload)
	return letter{event: *in.Event, body: body, sum: sumOf(body)}, nil
}

func notALetter(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("is not JSON: it ends too early")
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("must be a JSON object, not a JSON %s", wrong.Value)
		}
		return fmt.Errorf("%q must be a string, not a JSON %s", wrong.Field, wrong.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
