package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// The types of flags. Set checks the rule, so that a flag and its environment
// variable are refused alike, before anything else is done.

// secretive marks values that no message may repeat.
type secretive interface{ secret() }

var errDuration = errors.New("must be a duration such as 90s, 1h30m or 250ms, not negative and at most 100 years (876000h)")

const longest = 876000 * time.Hour

// parseDuration takes Go durations from 0 to 100 years.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > longest {
		return 0, errDuration
	}
	return d, nil
}

// parsePositive is parseDuration without 0.
func parsePositive(s string) (time.Duration, error) {
	d, err := parseDuration(s)
	if err == nil && d < time.Millisecond {
		return 0, errors.New("must be a duration of at least 1ms")
	}
	return d, err
}

// parseTime takes RFC 3339 from 1970 on, to the millisecond; what is finer is
// rounded up, since a job is never early.
func parseTime(s string) (time.Time, error) {
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return t, errors.New("must be a time such as 2027-01-31T08:30:00.250Z (RFC 3339)")
	}
	if t.Before(time.UnixMilli(0)) || t.After(queue.MaxDue) {
		return t, fmt.Errorf("must be from 1970 to %s", queue.MaxDue.Format(time.RFC3339))
	}
	return t, nil
}

func checkPriority(n int64) error {
	if n < 0 || n > 9 {
		return errors.New("must be 0 to 9")
	}
	return nil
}

func checkAttempts(n int64) error {
	if n < 1 || n > queue.MaxMaxAttempts {
		return fmt.Errorf("must be 1 to %d", queue.MaxMaxAttempts)
	}
	return nil
}

// rule returns what a check of package queue says behind the value.
func rule(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	return errors.New(text[strings.LastIndex(text, ": ")+len(": "):])
}

// parsed is a flag whose value is read by parse and kept in v.
type parsed[T any] struct {
	v     *T
	text  string
	word  string // for the help
	given bool
	parse func(string) (T, error)
}

func (p *parsed[T]) String() string { return p.text }
func (p *parsed[T]) Type() string   { return p.word }

func (p *parsed[T]) Set(s string) error {
	v, err := p.parse(s)
	if err != nil {
		return err
	}
	*p.v, p.text, p.given = v, s, true
	return nil
}

func durationFlag(v *time.Duration, def string) *parsed[time.Duration] {
	p := &parsed[time.Duration]{v: v, text: def, word: "DURATION", parse: parseDuration}
	if def != "" {
		*v, _ = parseDuration(def)
	}
	return p
}

func positiveFlag(v *time.Duration, def string) *parsed[time.Duration] {
	p := durationFlag(v, def)
	p.parse = parsePositive
	return p
}

func timeFlag(v *time.Time) *parsed[time.Time] {
	return &parsed[time.Time]{v: v, word: "TIME", parse: parseTime}
}

func nameFlag(v *string, what, def string) *parsed[string] {
	*v = def
	return &parsed[string]{v: v, text: def, word: "NAME", parse: func(s string) (string, error) {
		return s, rule(queue.CheckName(what, s))
	}}
}

func idFlag(v *string) *parsed[string] {
	return &parsed[string]{v: v, word: "ID", parse: func(s string) (string, error) { return s, rule(queue.CheckID(s)) }}
}

// intFlag keeps a nil for "unsaid".
func intFlag(v **int, check func(int64) error) *parsed[*int] {
	return &parsed[*int]{v: v, word: "N", parse: func(s string) (*int, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			if e := check(-1); e != nil {
				return nil, e
			}
			return nil, errors.New("must be a whole number")
		}
		if err := check(n); err != nil {
			return nil, err
		}
		i := int(n)
		return &i, nil
	}}
}

// list is a flag that may be repeated, or hold several values between commas.
type list[T any] struct {
	v       *[]T
	texts   []string
	word    string
	changed bool
	parse   func(string) (T, error)
}

func (l *list[T]) String() string { return strings.Join(l.texts, ",") }
func (l *list[T]) Type() string   { return l.word }

func (l *list[T]) Set(s string) error {
	var values []T
	texts := strings.Split(s, ",")
	for i, part := range texts {
		texts[i] = strings.TrimSpace(part)
		v, err := l.parse(texts[i])
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	if !l.changed { // the default goes
		*l.v, l.texts, l.changed = nil, nil, true
	}
	*l.v, l.texts = append(*l.v, values...), append(l.texts, texts...)
	return nil
}

func parseText(what string) func(string) (string, error) {
	return func(s string) (string, error) {
		if s == "" {
			return "", fmt.Errorf("must be %s, or several between commas", what)
		}
		return s, nil
	}
}

func parseNetwork(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, errors.New("must be a network such as 10.0.0.0/8 or ::1/128")
	}
	return p, nil
}

// secrets is a list that shows nothing of itself.
type secrets struct{ list[string] }

func (*secrets) secret()        {}
func (*secrets) String() string { return "" }
