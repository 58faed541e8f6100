package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// work is the payload of the kind "work": what its handler does.
type work struct {
	Sleep  time.Duration // ends at once when its context does
	Deaf   time.Duration // sleeps on, whatever its context says
	Fail   int           // fails up to this attempt
	Panic  int           // panics up to this attempt
	Goexit int           // ends its goroutine up to this attempt
	Exit   int           // kills its process up to this attempt
	Snooze time.Duration // asks for that at its first run
}

var workKind = queue.Define[work]("work")

var errWork = errors.New("told to fail")

// ledger is a file to which handlers append, in this process and in others:
//
//	start|end <id> <attempt> <fence> <node> <µs> <result>
type ledger struct {
	t    *testing.T
	path string
}

// entry is a line of a ledger.
type entry struct {
	what, id, node, result string
	attempt                int
	fence                  int64
	at                     time.Time
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t, filepath.Join(t.TempDir(), "ledger")}
}

// appendTo writes one line in one call, so lines of many processes do not mix.
func appendTo(path, what string, i queue.Info, node, result string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return // the test is over
	}
	defer func() { _ = f.Close() }()
	_, _ = fmt.Fprintf(f, "%s %s %d %d %s %d %s\n", what, i.ID, i.Attempt, i.Fence, node, time.Now().UnixMicro(), result)
}

// entries are all lines so far, in the order in which they were written.
func (l *ledger) entries() (all []entry) {
	b, err := os.ReadFile(l.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var e entry
		var us int64
		if _, err := fmt.Sscanf(lines.Text(), "%s %s %d %d %s %d %s", &e.what, &e.id, &e.attempt, &e.fence, &e.node, &us, &e.result); err != nil {
			l.t.Fatalf("ledger %q: %v", lines.Text(), err)
		}
		e.at = time.UnixMicro(us)
		all = append(all, e)
	}
	return all
}

// of filters: what is start or end, id and node may be "" for any.
func (l *ledger) of(what, id, node string) (some []entry) {
	for _, e := range l.entries() {
		if e.what == what && (id == "" || e.id == id) && (node == "" || e.node == node) {
			some = append(some, e)
		}
	}
	return some
}

func (l *ledger) starts(id string) []entry { return l.of("start", id, "") }
func (l *ledger) ends(id string) []entry   { return l.of("end", id, "") }

// holds are the ids that a node has started and not ended.
func (l *ledger) holds(node string) (ids []string) {
	for _, e := range l.entries() {
		if e.node != node {
			continue
		}
		if e.what == "start" {
			ids = append(ids, e.id)
		} else {
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == e.id })
		}
	}
	return ids
}

func (l *ledger) String() string {
	b, _ := os.ReadFile(l.path)
	return string(b)
}

// worker is the handler of the kind "work".
func worker(path, node string) func(context.Context, *queue.Job[work]) error {
	return func(ctx context.Context, j *queue.Job[work]) error {
		appendTo(path, "start", j.Info, node, "-")
		result := "goexit"
		defer func() { appendTo(path, "end", j.Info, node, result) }()
		do := j.In
		if do.Sleep > 0 && !sleep(ctx, do.Sleep) {
			result = strings.Fields(context.Cause(ctx).Error())[1] // node, session, time, job
			return ctx.Err()
		}
		if do.Deaf > 0 {
			sleep(context.Background(), do.Deaf)
		}
		switch {
		case j.Attempt <= do.Exit:
			os.Exit(7)
		case j.Attempt <= do.Panic:
			result = "panic"
			panic("told to panic")
		case j.Attempt <= do.Goexit:
			goexit()
		case j.Attempt <= do.Fail:
			result = "failed"
			return errWork
		}
		result = "ok"
		return nil
	}
}
