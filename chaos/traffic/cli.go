package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/work"
	"github.com/kelpiehq/kelpie/queue"
)

// Sentences of "kelpie enqueue".
var (
	notKnown = regexp.MustCompile(`it is not known whether (?:job (\S+)|the job) was stored`)
	notSent  = "the rest was not sent"
	idExists = queue.ErrExists.Error()
)

// lastWords is how long the output of a killed program is waited for.
const lastWords = 2 * time.Second

// byCLI enqueues one job by "kelpie enqueue", or several by "kelpie enqueue
// --file -".
func (p *producer) byCLI(ctx context.Context, ops []history.Op, requests []queue.Request) []history.Op {
	args, input := one(requests[0]), ""
	if len(requests) > 1 {
		args, input = []string{"--file", "-"}, many(requests)
	}
	cmd := exec.CommandContext(ctx, p.Kelpie, append([]string{"enqueue", "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "KELPIE_REDIS="+p.Redis, "KELPIE_PREFIX="+p.Prefix) // not in the arguments: a password may be in it
	cmd.Stdin, cmd.WaitDelay = strings.NewReader(input), lastWords
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	said := said{stdout.Bytes(), strings.TrimSpace(stderr.String()), err}
	if len(requests) > 1 {
		return said.ofMany(ops)
	}
	return []history.Op{said.ofOne(ops[0])}
}

// one are the arguments of one job.
func one(r queue.Request) []string {
	args := []string{
		"--kind", r.Kind, "--queue", r.Queue, "--priority", strconv.Itoa(*r.Priority), "--max-attempts", strconv.Itoa(r.MaxAttempts),
	}
	for flag, d := range map[string]time.Duration{"--delay": r.Delay, "--timeout": r.Timeout, "--retention": r.Retention} {
		if d > 0 {
			args = append(args, flag, d.String())
		}
	}
	if r.ID != "" {
		args = append(args, "--id", r.ID)
	}
	return append(args, string(r.Payload))
}

// many are the lines of several jobs.
func many(requests []queue.Request) string {
	var b strings.Builder
	for _, r := range requests {
		line := map[string]any{
			"kind": r.Kind, "queue": r.Queue, "priority": *r.Priority, "max_attempts": r.MaxAttempts,
		}
		for field, d := range map[string]time.Duration{"delay": r.Delay, "timeout": r.Timeout, "retention": r.Retention} {
			if d > 0 {
				line[field] = d.String()
			}
		}
		if r.ID != "" {
			line["id"] = r.ID
		}
		head, _ := json.Marshal(line) // names and numbers always can be
		b.Write(head[:len(head)-1])
		b.WriteString(`,"payload":`)
		b.Write(r.Payload) // its bytes as they stand: Marshal may write them anew
		b.WriteString("}\n")
	}
	return b.String()
}

// said is what a run of kelpie printed, and how it ended.
type said struct {
	stdout []byte
	stderr string
	err    error
}

// goPanic is the exit code of a Go program that panics; kelpie itself uses it for
// mistakes in its arguments, of which there are none here.
const goPanic = 2

// byItself reports that the program came to its own end: what it did not say, it
// did not do.
func (s said) byItself() bool {
	var exit *exec.ExitError
	return s.err == nil || errors.As(s.err, &exit) && exit.Exited() && exit.ExitCode() != goPanic
}

// neverRan reports that the program could not be started.
func (s said) neverRan() bool {
	var exit *exec.ExitError
	return s.err != nil && !errors.As(s.err, &exit) && !errors.Is(s.err, exec.ErrWaitDelay) && !errors.Is(s.err, context.Canceled)
}

// told is what the program printed of one job.
type told struct {
	Line  int    `json:"line"`
	ID    string `json:"id"`
	Error string `json:"error"`
}

// ofOne reads the outcome of one job.
func (s said) ofOne(op history.Op) history.Op {
	var t told
	switch m := notKnown.FindStringSubmatch(s.stderr); {
	case s.neverRan():
		return outcome(op, history.Fail, "", s.err.Error())
	case m != nil:
		return outcome(op, history.Unknown, m[1], s.stderr)
	case json.Unmarshal(s.stdout, &t) == nil && t.ID != "":
		return outcome(op, history.OK, t.ID, "")
	case !s.byItself() || s.err == nil:
		return outcome(op, history.Unknown, "", "kelpie enqueue ended without a word")
	}
	return outcome(op, history.Fail, "", s.stderr)
}

// ofMany reads the outcomes of several jobs. The list may end early: then either
// the program said that it sent nothing of the rest, or nobody knows.
func (s said) ofMany(ops []history.Op) []history.Op {
	list := map[int]told{}
	d := json.NewDecoder(bytes.NewReader(s.stdout))
	if _, err := d.Token(); err == nil {
		for d.More() {
			var t told
			if d.Decode(&t) != nil {
				break
			}
			list[t.Line] = t
		}
	}
	ends := make([]history.Op, len(ops))
	for i, op := range ops {
		t, listed := list[i+1]
		switch {
		case listed && t.Error == "":
			ends[i] = outcome(op, history.OK, t.ID, "")
		case listed && notKnown.MatchString(t.Error):
			ends[i] = outcome(op, history.Unknown, t.ID, t.Error)
		case listed:
			ends[i] = outcome(op, history.Fail, t.ID, t.Error)
		case s.neverRan():
			ends[i] = outcome(op, history.Fail, "", s.err.Error())
		case s.byItself() && s.err != nil && (len(list) == 0 || strings.Contains(s.stderr, notSent)):
			ends[i] = outcome(op, history.Fail, "", s.stderr)
		default:
			ends[i] = outcome(op, history.Unknown, "", "kelpie enqueue ended without a word")
		}
	}
	return ends
}

// longestError bounds a line of the history.
const longestError = 500 // bytes

// outcome is the second line of a call.
func outcome(op history.Op, phase, id, text string) history.Op {
	op.T, op.Phase = history.Now(), phase
	if id != "" {
		op.ID = id
	}
	if op.Error = strings.ToValidUTF8(text[:min(len(text), longestError)], ""); phase == history.Fail && strings.Contains(text, idExists) {
		op.Error = work.Exists
	}
	return op
}
