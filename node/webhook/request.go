package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kelpiehq/kelpie/queue"
)

// Kind is the kind of job that a Handler serves.
//
// Kind.Enqueue encodes Body anew (compact, with <, > and & escaped). Where its
// bytes matter, enqueue Request.Payload.
var Kind = queue.Define[Request]("webhook")

// Limits of timeout_ms.
const (
	defaultTimeoutMS = 30_000
	maxTimeoutMS     = 600_000
)

// Request is the payload of a job: one HTTP request. Only URL is needed; at most
// one of the bodies may be set.
type Request struct {
	URL        string            `json:"url"`                   // http or https
	Method     string            `json:"method,omitempty"`      // default POST
	Headers    map[string]string `json:"headers,omitempty"`     //
	Body       json.RawMessage   `json:"body,omitempty"`        // any JSON value
	BodyText   string            `json:"body_text,omitempty"`   //
	BodyBase64 []byte            `json:"body_base64,omitempty"` // the bytes themselves; base64 only in JSON
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`  // of the whole exchange; default 30,000, at most 600,000
}

// Payload returns the JSON of r with Body byte for byte as it stands. The error
// says what Check would.
func (r Request) Payload() ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	body := r.Body
	r.Body = nil
	payload, err := json.Marshal(r)
	if err != nil || len(body) == 0 {
		return payload, err
	}
	payload = append(payload[:len(payload)-1], `,"body":`...)
	return append(append(payload, body...), '}'), nil
}

// Check returns the first rule that r breaks: the sentence with which a Handler
// would refuse it. It does no I/O.
func (r Request) Check() error {
	_, err := r.plan()
	return err
}

// UnmarshalJSON reads a payload strictly: unlike encoding/json by itself it
// refuses unknown and doubled fields, other spellings of a name, null, and text
// that would not come out as it went in.
func (r *Request) UnmarshalJSON(payload []byte) error {
	var got Request
	var bodies []string
	err := eachField(payload, func(name string, value json.RawMessage) (err error) {
		if strings.HasPrefix(name, "body") {
			bodies = append(bodies, name)
		}
		switch name {
		case "url":
			got.URL, err = decodeText(value)
		case "method":
			got.Method, err = decodeText(value)
		case "headers":
			got.Headers, err = decodeHeaders(value)
		case "body":
			got.Body = value
		case "body_text":
			got.BodyText, err = decodeText(value)
		case "body_base64":
			got.BodyBase64, err = decodeBase64(value)
		case "timeout_ms":
			got.TimeoutMS, err = decodeTimeout(value)
		default:
			return fmt.Errorf("unknown field %q", clip(name, 100))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(bodies) > 1:
		return fmt.Errorf("%s: give one of them", strings.Join(bodies, " and "))
	}
	*r = got
	return nil
}

func decodeHeaders(value json.RawMessage) (map[string]string, error) {
	headers := map[string]string{}
	err := eachField(value, func(name string, value json.RawMessage) (err error) {
		if headers[name], err = decodeText(value); err != nil {
			return fmt.Errorf("%q: %w", clip(name, 100), err)
		}
		return nil
	})
	return headers, err
}

func decodeBase64(value json.RawMessage) ([]byte, error) {
	text, err := decodeText(value)
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errors.New("must be standard base64 with padding")
	}
	return b, nil
}

func decodeTimeout(value json.RawMessage) (int64, error) {
	ms, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("must be a whole number of milliseconds, not %s", clip(string(value), 100))
	}
	return ms, checkTimeout(ms)
}

func checkTimeout(ms int64) error {
	if ms < 1 || ms > maxTimeoutMS {
		return fmt.Errorf("%d must be 1 to %d milliseconds", ms, maxTimeoutMS)
	}
	return nil
}
