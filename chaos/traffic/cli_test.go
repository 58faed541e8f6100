package traffic

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/work"
)

// ended returns the error of a program with this exit code; -1: it was killed.
func ended(t *testing.T, code int) error {
	t.Helper()
	script := fmt.Sprintf("exit %d", code)
	if code < 0 {
		script = "kill -9 $$"
	}
	return exec.Command("/bin/sh", "-c", script).Run()
}

func TestWhatTheCommandLineSaysOfOneJob(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stdout, stderr string
		code           int
		phase, id, err string
	}{
		"stored":                    {`{"id":"j1"}`, "", 0, history.OK, "j1", ""},
		"the id is used":            {"", "kelpie: enqueue in queue q, job j: a job with this id exists", 1, history.Fail, "", work.Exists},
		"Redis is away":             {"", "kelpie: Redis at x does not answer", 69, history.Fail, "", "kelpie: Redis at x does not answer"},
		"no answer":                 {"", "kelpie: it is not known whether job j2 was stored: timeout", 1, history.Unknown, "j2", "kelpie: it is not known whether job j2 was stored: timeout"},
		"killed":                    {"", "", -1, history.Unknown, "", "kelpie enqueue ended without a word"},
		"killed, but it had spoken": {`{"id":"j1"}`, "", -1, history.OK, "j1", ""},
		"it panicked":               {"", "panic: oh", 2, history.Unknown, "", "kelpie enqueue ended without a word"},
		"no word and no error":      {"", "", 0, history.Unknown, "", "kelpie enqueue ended without a word"},
	} {
		got := said{[]byte(tt.stdout), tt.stderr, ended(t, tt.code)}.ofOne(history.Op{Client: "p1", N: 2, Phase: history.Invoke})
		if got.Phase != tt.phase || got.ID != tt.id || got.Error != tt.err || got.N != 2 || got.T == 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	missing := exec.Command("/nowhere/kelpie").Run()
	if got := (said{err: missing}).ofOne(history.Op{}); got.Phase != history.Fail || errors.As(missing, new(*exec.ExitError)) {
		t.Errorf("a program that is not there: %+v", got)
	}
}

func TestWhatTheCommandLineSaysOfManyJobs(t *testing.T) {
	t.Parallel()
	const unknown = `{"line":2,"id":"b","error":"it is not known whether the job was stored: timeout"}`
	for name, tt := range map[string]struct {
		stdout, stderr string
		code           int
		want           string
	}{
		"all stored":               {"[\n{\"line\":1,\"id\":\"a\"},\n{\"line\":2,\"id\":\"b\"},\n{\"line\":3,\"id\":\"c\"}\n]\n", "", 0, "ok a ok b ok c"},
		"one is there already":     {`[{"line":1,"id":"a"},{"line":2,"id":"b","error":"a job with this id exists"},{"line":3,"id":"c"}]`, "line 2", 1, "ok a fail b ok c"},
		"one is unknown":           {`[{"line":1,"id":"a"},` + unknown, "stopped behind line 2, the rest was not sent", 1, "ok a unknown b fail "},
		"nothing was begun":        {"", "kelpie: Redis at x does not answer", 69, "fail  fail  fail "},
		"killed in the middle":     {`[{"line":1,"id":"a"},{"li`, "", -1, "ok a unknown  unknown "},
		"killed before it spoke":   {"", "", -1, "unknown  unknown  unknown "},
		"it broke in the middle":   {`[{"line":1,"id":"a"}`, "panic: oh", 2, "ok a unknown  unknown "},
		"an end without an excuse": {`[{"line":1,"id":"a"}]`, "", 0, "ok a unknown  unknown "},
	} {
		ends := said{[]byte(tt.stdout), tt.stderr, ended(t, tt.code)}.ofMany(make([]history.Op, 3))
		got := ""
		for i, end := range ends {
			if i > 0 {
				got += " "
			}
			got += end.Phase + " " + end.ID
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
