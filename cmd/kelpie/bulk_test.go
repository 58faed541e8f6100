package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/kelpiehq/kelpie/queue"
)

func TestLinesReadsInBoundedMemory(t *testing.T) {
	long := strings.Repeat("x", maxLine+1)
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"nothing has no lines":                        {"", nil},
		"the last line needs no end":                  {"a\nb", []string{"a", "b"}},
		"ends of Windows are ends":                    {"a\r\nb\r\n", []string{"a", "b"}},
		"an empty line counts":                        {"a\n\nb\n", []string{"a", "", "b"}},
		"a byte order mark is no data":                {"\xef\xbb\xbfa\n", []string{"a"}},
		"a line over the buffer is whole":             {strings.Repeat("y", 300<<10) + "\nb\n", []string{strings.Repeat("y", 300<<10), "b"}},
		"a line of full length is whole":              {long[:maxLine-1] + "\nb\n", []string{long[:maxLine-1], "b"}},
		"a longer one is skipped, and the next comes": {long + "\nb\n", []string{"<long>", "b"}},
		"a longer one can be the last":                {"a\n" + long, []string{"a", "<long>"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLines(strings.NewReader(tt.in))
			var got []string
			for {
				line, err := l.next()
				if errors.Is(err, errLongLine) {
					line = []byte("<long>")
				} else if err != nil {
					break
				}
				got = append(got, string(line))
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("lines of %d bytes: got %d lines, want %d", len(tt.in), len(got), len(tt.want))
			}
			if l.bytes != int64(len(tt.in)) {
				t.Errorf("%d bytes counted, want %d", l.bytes, len(tt.in))
			}
		})
	}
}

// bulkOf returns a bulk whose jobs end as outcome says, and its two outputs.
func bulkOf(outcome func(n int) error) (b *bulk, out, errOut *bytes.Buffer) {
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	cmd := newEnqueue()
	cmd.SetOut(out)
	o := newOutput(cmd, false)
	n := 0
	s := &space{redis: redisURL{"redis://u:geheim@redis.example:6379"}}
	return &bulk{
		send: func(_ context.Context, requests []queue.Request) []queue.Result {
			results := make([]queue.Result, len(requests))
			for i := range results {
				results[i] = queue.Result{ID: fmt.Sprint("j", n), Err: outcome(n)}
				n++
			}
			return results
		},
		explain: s.explain, out: o, list: o.listing(), errOut: errOut,
	}, out, errOut
}

func manyLines(n int) io.Reader {
	return strings.NewReader(strings.Repeat(`{"kind":"echo"}`+"\n", n))
}

func TestBulkStopsAtAFaultOfRedisAndSaysWhere(t *testing.T) {
	after := func(first int, err error) func(int) error {
		return func(n int) error {
			if n < first {
				return nil
			}
			return err
		}
	}
	unknown := &queue.OpError{Op: "enqueue", Queue: "default", Job: "j", Err: fmt.Errorf("%w: %w", queue.ErrUnknown, syscall.ECONNRESET)}
	full := &queue.OpError{Op: "enqueue", Queue: "default", Job: "j", Err: fmt.Errorf("%w: OOM", queue.ErrFull)}
	for name, tt := range map[string]struct {
		outcome      func(int) error
		code         int
		ids          int
		stderr, says string
	}{
		"nothing is stored when Redis is away from the start": {
			after(0, fmt.Errorf("%w: %w", queue.ErrUnreachable, syscall.ECONNREFUSED)), exitUnreachable, 0,
			"kelpie: lines 1 to 1000: Redis at redis.example:6379 is not reachable: connection refused\n",
			"Redis at redis.example:6379 is not reachable: connection refused; stopped behind line 1000 with 0 jobs stored, the rest was not sent",
		},
		"a chunk that was stored makes it done in part": {
			after(1000, full), exitFailed, 1000,
			"kelpie: lines 1001 to 2000: Redis at redis.example:6379 is out of memory: " + full.Err.Error() + "\n",
			"; stopped behind line 2000 with 1000 jobs stored, the rest was not sent",
		},
		"an unknown result is called that": {
			after(1500, unknown), exitFailed, 1500,
			"kelpie: lines 1501 to 2000: it is not known whether the job was stored: result unknown: connection reset by peer\n",
			"stopped behind line 2000 with 1500 jobs stored",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, out, errOut := bulkOf(tt.outcome)
			err := b.run(t.Context(), manyLines(2500))
			if codeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("error %q with code %d, want %q with %d", err, codeOf(err), tt.says, tt.code)
			}
			if n := strings.Count(out.String(), "\n"); n != tt.ids {
				t.Errorf("%d ids, want %d", n, tt.ids)
			}
			if errOut.String() != tt.stderr {
				t.Errorf("stderr %q, want %q", errOut, tt.stderr)
			}
		})
	}
}

func TestBulkStoresEachLineAtOnceWhenTheyComeSlowly(t *testing.T) {
	t.Parallel()
	b, out, _ := bulkOf(func(int) error { return nil })
	stored := make(chan int)
	send := b.send
	b.send = func(ctx context.Context, r []queue.Request) []queue.Result {
		if len(r) > 0 {
			stored <- len(r)
		}
		return send(ctx, r)
	}
	r, w := io.Pipe()
	done := make(chan error)
	go func() { done <- b.run(t.Context(), r) }()
	for range 3 {
		fmt.Fprintln(w, `{"kind":"echo"}`)
		if n := <-stored; n != 1 {
			t.Errorf("%d jobs at once, want 1", n)
		}
	}
	w.Close()
	if err := <-done; err != nil || out.String() != "j0\nj1\nj2\n" {
		t.Errorf("error %v, ids %q", err, out)
	}
}

func TestBulkEndsWithItsContextWhileItWaitsForInput(t *testing.T) {
	t.Parallel()
	b, out, _ := bulkOf(func(int) error { return nil })
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	sent := make(chan struct{})
	send := b.send
	b.send = func(c context.Context, q []queue.Request) []queue.Result {
		defer close(sent)
		return send(c, q)
	}
	done := make(chan error)
	go func() { done <- b.run(ctx, r) }()
	fmt.Fprintln(w, `{"kind":"echo"}`)
	<-sent
	cancel(interrupted{syscall.SIGINT})
	err := mark(ctx, <-done)
	if codeOf(err) != 130 || !strings.Contains(err.Error(), "stopped behind line 1 with 1 jobs stored") || out.String() != "j0\n" {
		t.Errorf("error %v with code %d, ids %q", err, codeOf(err), out)
	}
}
