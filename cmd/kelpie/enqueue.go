package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kelpiehq/kelpie/queue"
)

const enqueueHelp = `Store one job, or many with --file, and print the ids, one a line.

One job: the payload is the argument, byte for byte, or the content of
--payload-file; without either it is empty. The exit code is 0 only if Redis has
stored the job.

Many jobs: --file takes one JSON object a line (- is stdin), with the fields kind,
queue, payload (any JSON value, its bytes kept as they stand) or payload_base64,
delay ("90s") or at (RFC 3339), id, priority, max_attempts, timeout and retention.
The other flags are defaults for what a line leaves out. Lines are read strictly:
an unknown, doubled or misspelt field is an error.

Lines are stored as they stream in, and each stands for itself. A bad line is named
on stderr with its number and not stored; all good lines before and behind it are.
A fault of Redis or of stdout stops the run and stderr says behind which line. The
ids stand on stdout in the order of the input, those of stored jobs only; with
--json each line has its {line, id} or {line, error}. Exit code: 0 all stored; 1
some; 65 none, every line was bad; as below if Redis was at fault and none was.
With an id in each line a run that was cut short can be repeated as it is: jobs
that are there are refused, not doubled.`

const enqueueExample = `  kelpie enqueue --kind email.send --queue mail '{"to":"a@example.com"}'
  kelpie enqueue -k report --at 2027-01-31T08:30:00Z --id report-2027-01
  kelpie enqueue -k resize --payload-file cat.jpg --delay 90s --max-attempts 5
  echo '{"kind":"email.send","payload":{"to":"b@example.com"},"delay":"5m"}' | kelpie enqueue --file -
  kelpie enqueue --file jobs.jsonl --queue bulk > ids.txt`

// enqueueFlags are the flags of one job, and the defaults of many.
type enqueueFlags struct {
	space
	request     queue.Request
	id          *parsed[string]
	attempts    *int
	payloadFile string
	file        string
	json        bool
}

func newEnqueue() *cobra.Command {
	f := &enqueueFlags{}
	cmd := &cobra.Command{
		Use:     "enqueue --kind KIND [PAYLOAD] | enqueue --file PATH",
		Short:   "Add jobs",
		Long:    enqueueHelp,
		Example: enqueueExample,
		Args:    atMost(1),
		RunE:    runs(f.run),
	}
	f.space.flags(cmd)
	f.jobFlags(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.payloadFile, "payload-file", "", "`PATH` of the payload of one job; - is stdin")
	fs.StringVar(&f.file, "file", "", "`PATH` of many jobs, one JSON object a line; - is stdin")
	either(cmd, "payload-file", "file")
	either(cmd, "delay", "at")
	jsonFlag(cmd, &f.json, "a JSON object, with --file a JSON array")
	return cmd
}

func (f *enqueueFlags) jobFlags(cmd *cobra.Command) {
	r, fs := &f.request, cmd.Flags()
	f.id = idFlag(&r.ID)
	fs.VarP(nameFlag(&r.Kind, "kind", ""), "kind", "k", "kind of the job: says which handler runs it")
	fs.VarP(nameFlag(&r.Queue, "queue", queue.DefaultQueue), "queue", "q", "queue")
	fs.Var(durationFlag(&r.Delay, ""), "delay", "due that long from now, by Redis's clock, such as 90s or 1h30m")
	fs.Var(timeFlag(&r.At), "at", "due at that time, such as 2027-01-31T08:30:00.250Z")
	fs.Var(f.id, "id", "id, refused if a job with it exists or ended less than 10 minutes ago (default: a new one)")
	fs.Var(intFlag(&r.Priority, checkPriority), "priority", "0 to 9, higher runs first (default 5)")
	fs.Var(intFlag(&f.attempts, checkAttempts), "max-attempts", "executions at most that fail, time out or crash (default 3)")
	fs.Var(positiveFlag(&r.Timeout, ""), "timeout", "time for one attempt (default 30m)")
	fs.Var(durationFlag(&r.Retention, ""), "retention", "how long the completed job can be looked at (default: not at all)")
}

func (f *enqueueFlags) run(cmd *cobra.Command, args []string) error {
	if f.attempts != nil {
		f.request.MaxAttempts = *f.attempts
	}
	if err := f.check(cmd, args); err != nil {
		return err
	}
	if f.file != "" {
		return f.many(cmd)
	}
	if err := f.payload(cmd, args); err != nil {
		return err
	}
	return f.one(cmd)
}

// check finds flags that do not fit together. An argument silences the
// variables of the two files.
func (f *enqueueFlags) check(cmd *cobra.Command, args []string) error {
	file, payloadFile := cmd.Flags().Changed("file"), cmd.Flags().Changed("payload-file")
	if len(args) > 0 {
		switch {
		case file:
			return usage("a payload and --file: give one of them")
		case payloadFile:
			return usage("a payload and --payload-file: give one of them")
		}
		f.file, f.payloadFile = "", ""
	}
	switch {
	case f.file != "" && f.id.given:
		return usage("--id and --file: each line has its own id")
	case f.file == "" && f.request.Kind == "":
		return usage("--kind is missing: it says which handler runs the job")
	}
	return nil
}

func (f *enqueueFlags) payload(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		f.request.Payload = []byte(args[0])
	}
	if f.payloadFile != "" {
		var err error
		f.request.Payload, err = unlessCut(cmd.Context(), func() ([]byte, error) { return readPayload(cmd, f.payloadFile) })
		if err != nil {
			return err
		}
	}
	if len(f.request.Payload) > queue.DefaultMaxPayload {
		return badData("the payload is over the limit of %d bytes", queue.DefaultMaxPayload)
	}
	return nil
}

// readPayload reads at most one byte more than is allowed.
func readPayload(cmd *cobra.Command, path string) ([]byte, error) {
	src, err := open(cmd, path)
	if err != nil {
		return nil, err
	}
	defer src.done()
	payload, err := io.ReadAll(io.LimitReader(src.in, queue.DefaultMaxPayload+1))
	if err != nil {
		return nil, badData("--payload-file %s: %w", path, plainPath(err))
	}
	return payload, nil
}

// source is an opened input.
type source struct {
	in   io.Reader
	done func()
}

// open opens a file, or stdin as "-".
func open(cmd *cobra.Command, path string) (source, error) {
	if path == "-" {
		return source{cmd.InOrStdin(), func() {}}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return source{}, badData("%s: %w", path, plainPath(err))
	}
	return source{file, func() { _ = file.Close() }}, nil
}

// unlessCut returns what read does, or the cause of ctx's end. Nothing can end a
// read of a silent pipe: it stays behind, and the process ends without it.
func unlessCut[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	came := make(chan outcome, 1)
	go func() {
		v, err := read()
		came <- outcome{v, err}
	}()
	select {
	case o := <-came:
		return o.v, o.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%w; nothing was stored", context.Cause(ctx))
	}
}

// plainPath drops operation and path, which our own sentence has.
func plainPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// idView is the JSON of one job that was stored.
type idView struct {
	ID string `json:"id"`
}

func (f *enqueueFlags) one(cmd *cobra.Command) error {
	c, done, err := f.connect(cmd.Context(), writes)
	if err != nil {
		return err
	}
	defer done()
	id, err := c.Enqueue(cmd.Context(), f.request)
	if err != nil {
		return f.notStored(id, err)
	}
	out := newOutput(cmd, f.json)
	out.strict = true
	if f.json {
		err = out.object(idView{id})
	} else {
		_ = out.print(id, "\n")
		err = out.flush()
	}
	if err != nil {
		return failed("%w; the job is stored as %s", err, id)
	}
	return nil
}

func (f *enqueueFlags) notStored(id string, err error) error {
	if errors.Is(err, queue.ErrUnknown) {
		hint := fmt.Sprintf("%q tells whether it is there", "kelpie jobs show "+id)
		if f.id.given {
			hint = "run it again: with the same --id it is not stored twice"
		}
		return newFault(exitFailed, hint, "it is not known whether job %s was stored: %s", id, lastOf(err))
	}
	return f.explain(err)
}

// many streams a file of jobs.
func (f *enqueueFlags) many(cmd *cobra.Command) error {
	src, err := unlessCut(cmd.Context(), func() (source, error) { return open(cmd, f.file) })
	if err != nil {
		return err
	}
	defer src.done()
	c, closeAll, err := f.connect(cmd.Context(), writes)
	if err != nil {
		return err
	}
	defer closeAll()
	out := newOutput(cmd, f.json)
	out.strict = true
	b := &bulk{
		send: c.EnqueueMany, explain: f.explain, base: f.request,
		out: out, list: out.listing(), errOut: cmd.ErrOrStderr(),
		bar: newBar(cmd, src.in),
	}
	return b.run(cmd.Context(), src.in)
}
