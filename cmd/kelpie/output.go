package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// output is stdout. The first failed write is kept and returned by every later
// call: a closed pipe as errReaderLeft.
type output struct {
	w      *bufio.Writer
	json   bool
	strict bool // a closed pipe is a failure: something is being done, not only read
	err    error
}

// jsonFlag adds --json.
func jsonFlag(cmd *cobra.Command, v *bool, what string) {
	cmd.Flags().BoolVar(v, "json", false, "print "+what)
}

func newOutput(cmd *cobra.Command, asJSON bool) *output {
	return &output{w: bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10), json: asJSON}
}

func (o *output) print(parts ...string) error {
	for _, p := range parts {
		if o.err == nil {
			_, err := o.w.WriteString(p)
			o.keep(err)
		}
	}
	return o.err
}

func (o *output) flush() error {
	if o.err == nil {
		o.keep(o.w.Flush())
	}
	return o.err
}

func (o *output) keep(err error) {
	switch {
	case err == nil:
	case errors.Is(err, syscall.EPIPE) && !o.strict:
		o.err = errReaderLeft
	default:
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		o.err = failed("stdout: %w", err)
	}
}

// object prints one JSON value.
func (o *output) object(v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	_ = o.print(string(b), "\n")
	return o.flush()
}

// encode is JSON as people write it, without escapes for HTML.
func encode(v any) ([]byte, error) {
	if b, ok := v.(json.RawMessage); ok {
		return b, nil // Marshal would compact it
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// listing is a list on its way to stdout, item by item: one JSON array with an
// item a line, or a table, of which it holds one page in memory.
type listing struct {
	out    *output
	header []string
	rows   [][]string
	n      int
}

// pageRows is how many rows share the widths of their columns.
const pageRows = 200

func (o *output) listing(header ...string) *listing { return &listing{out: o, header: header} }

// add takes an item both as the value of its JSON and as the cells of its row.
func (l *listing) add(v any, row ...string) error {
	l.n++
	if l.out.json {
		b, err := encode(v)
		if err != nil {
			return err
		}
		return l.out.print(map[bool]string{true: "[\n", false: ",\n"}[l.n == 1], string(b))
	}
	if l.rows = append(l.rows, row); len(l.rows) == pageRows {
		return l.page()
	}
	return l.out.err
}

func (l *listing) page() error {
	w := tabwriter.NewWriter(l.out.w, 2, 0, 2, ' ', 0)
	if l.n <= pageRows {
		l.rows = append([][]string{l.header}, l.rows...)
	}
	for _, row := range l.rows {
		for i := range row {
			row[i] = oneLine(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	l.rows = nil
	if l.out.err == nil {
		l.out.keep(w.Flush())
	}
	return l.out.flush()
}

// end closes the list; empty says on w what an empty one means.
func (l *listing) end(w io.Writer, empty string) error {
	switch {
	case l.out.json && l.n == 0:
		_ = l.out.print("[]\n")
	case l.out.json:
		_ = l.out.print("\n]\n")
	case l.n == 0:
		fmt.Fprintln(w, empty)
	case len(l.rows) > 0:
		return l.page()
	}
	return l.out.flush()
}

// oneLine keeps a text from breaking a table or driving the terminal.
func oneLine(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
}

// stamp is RFC 3339 with milliseconds in UTC.
const stamp = "2006-01-02T15:04:05.000Z07:00"

// moment is a time that is null in JSON, and "-" in a table, while there is
// none.
type moment struct{ time.Time }

func (m moment) MarshalJSON() ([]byte, error) {
	if m.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + m.String() + `"`), nil
}

func (m moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.UTC().Format(stamp)
}

// span is a duration as a person reads it.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// isTerminal reports whether a person looks at the stream.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
