package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// eachField calls visit for every field of the JSON object in data, with a copy
// of its value as it stands, and refuses what is not exactly one object whose
// names are spelt once each.
func eachField(data []byte, visit func(name string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil {
		return notJSON(err)
	} else if open != json.Delim('{') {
		return errors.New("must be a JSON object")
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return notJSON(err)
		}
		name, _ := key.(string) // the decoder lets nothing else pass here
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return notJSON(err)
		}
		if seen[name] {
			return fmt.Errorf("field %q is given twice", clip(name, 100))
		}
		seen[name] = true
		if err := visit(name, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("must be one JSON object and nothing after it")
	}
	return nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("is not JSON: it ends too early")
	}
	return fmt.Errorf("is not JSON: %w", err)
}

// decodeText decodes a JSON string and refuses one that encoding/json would
// alter: bytes that are no UTF-8, and halves of surrogate pairs.
func decodeText(value json.RawMessage) (text string, err error) {
	switch {
	case value[0] != '"':
		return "", fmt.Errorf("must be a string, not %s", clip(string(value), 100))
	case !utf8.Valid(value):
		return "", errors.New("must be UTF-8; other bytes travel as body_base64")
	case hasLoneSurrogate(value):
		return "", errors.New("must not contain half of a surrogate pair")
	}
	err = json.Unmarshal(value, &text)
	return text, err
}

// hasLoneSurrogate looks for \uD800 to \uDFFF outside of a pair, in valid JSON.
func hasLoneSurrogate(s []byte) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++ // at the letter after the backslash
		switch r := escaped(s[i:]); {
		case r >= 0xDC00 && r <= 0xDFFF:
			return true
		case r >= 0xD800 && r <= 0xDBFF:
			rest := s[i+5:]
			if rest[0] != '\\' {
				return true
			}
			if low := escaped(rest[1:]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 10 // at the last digit of the second half
		}
	}
	return false
}

// escaped returns the code in s if it begins with uXXXX, else -1.
func escaped(s []byte) int64 {
	if len(s) < 5 || s[0] != 'u' {
		return -1
	}
	code, err := strconv.ParseUint(string(s[1:5]), 16, 16)
	if err != nil {
		return -1
	}
	return int64(code)
}
