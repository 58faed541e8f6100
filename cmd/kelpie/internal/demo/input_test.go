package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPayloadsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"64-bit integers":         `{"id":9223372036854775807,"next":18446744073709551615}`,
		"spaces and order":        `{ "b" : 1 ,  "a":[1, 2 ]}`,
		"escapes as they stand":   `{"a":"\u00e9\/\ud83d\udc15<&>\u2028"}`,
		"text that is not ASCII":  `{"ü":"東京 🐕"}`,
		"numbers as they stand":   `[1e+400,-0.0,0.10000000000000000555]`,
		"the word null":           `null`,
		"bytes that are no UTF-8": "{\"a\":\"\xff\xfe\"}",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := parseLetter([]byte(`{"event": "e.f", "payload":   ` + body + "  }"))
			if err != nil || string(l.body) != body || l.sum != sumOf([]byte(body)) || l.event != "e.f" {
				t.Errorf("parseLetter = %q, %v, want %q", l.body, err, body)
			}
		})
	}
}

func TestABadLineIsNamed(t *testing.T) {
	t.Parallel()
	const good = `{"event":"a","payload":{}}`
	for name, tt := range map[string]struct{ text, want string }{
		"broken JSON":                 {good + "\n{\"event\":\"a\",", "f line 2: is not JSON: it ends too early"},
		"blank lines count":           {good + "\n\n  \n{]", "f line 4: invalid character ']'"},
		"no object":                   {`["a"]`, "f line 1: must be a JSON object, not a JSON array"},
		"two objects":                 {good + good, "f line 1: must be one JSON object and nothing after it"},
		"no event":                    {`{"payload":{}}`, `f line 1: "event" is missing`},
		"an event that is no string":  {`{"event":7,"payload":{}}`, `f line 1: "event" must be a string, not a JSON number`},
		"an event with a line break":  {`{"event":"a\nb","payload":{}}`, `f line 1: event "a\nb": must be 1 to 100 printable ASCII`},
		"an empty event":              {`{"event":"","payload":{}}`, `must be 1 to 100`},
		"no payload":                  {`{"event":"a"}`, `f line 1: "payload" is missing`},
		"an unknown field":            {`{"event":"a","payload":{},"paylod":1}`, `f line 1: unknown field "paylod"`},
		"a payload over the limit":    {`{"event":"a","payload":"` + strings.Repeat("x", maxBody) + `"}`, "f line 1: payload of 524290 bytes: must be at most 524288"},
		"a line over the limit":       {good + "\n" + strings.Repeat(" ", maxLine+1), "f line 2: must be at most 1048576 bytes"},
		"no line at all":              {"\n\n", "f: holds no webhook"},
		"too many":                    {strings.Repeat(good+"\n", maxLetters+1), "f: 1501 webhooks, must be at most 1500"},
		"more than one":               {"x\n" + good + "\ny", "f line 3: invalid"},
		"more bad ones than are told": {strings.Repeat("x\n", 9), "and 4 more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readLetters("f", strings.NewReader(tt.text))
			var e *Error
			if !errors.As(err, &e) || e.ExitCode() != 65 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("readLetters = %v, want exit code 65 and %q", err, tt.want)
			} else if !strings.HasSuffix(err.Error(), "nothing was started") {
				t.Errorf("readLetters = %v, want it to say that nothing was started", err)
			}
		})
	}
}

func TestAFileThatIsNotThereIsBadInput(t *testing.T) {
	t.Parallel()
	var e *Error
	if _, err := loadLetters(filepath.Join(t.TempDir(), "none")); !errors.As(err, &e) || e.Code != 65 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("loadLetters = %v, want exit code 65", err)
	}
}

func TestTheSampleIsLikeRealWebhooks(t *testing.T) {
	t.Parallel()
	letters, err := loadLetters("")
	if err != nil || len(letters) < 10 {
		t.Fatalf("%d letters, %v, want 10 or more", len(letters), err)
	}
	var text strings.Builder
	for _, l := range letters {
		if len(l.body) < 900 || len(l.body) > 4<<10 || !json.Valid(l.body) {
			t.Errorf("%s has %d bytes, want valid JSON of 1 to 4 KB", l.event, len(l.body))
		}
		fmt.Fprintf(&text, "%s", l.body)
	}
	for _, want := range []string{"9223372036854775807", "東京", `\ud83d\udc15`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the sample has no %s", want)
		}
	}
}
