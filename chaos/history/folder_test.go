package history

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// written makes a folder with one line of each kind.
func written(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	lines := map[string]any{
		ClientFile:                             Op{T: 1, Phase: Invoke, Client: "c", N: 1, Verb: "enqueue", Queue: "q", Sum: "s"},
		LogFile:                                Step{T: 2, Queue: "q", US: 3, Script: "enqueue", Who: "c", Turn: 1, Moves: []Move{{What: Store, ID: "x", To: "waiting", Max: 3}}},
		FaultsFile:                             Strike{T: 4, Phase: Hit, N: 1, Kind: "kill", Held: []string{"q/x"}},
		SamplesFile:                            Sample{T: 5, Members: map[string]int{"n1": 3}},
		ClockFile:                              Tick{T: 6, After: 8, US: 100},
		filepath.Join(LedgerDir, "n2-7.jsonl"): Mark{T: 9, E: "start", ID: "x", Queue: "q", Node: "n2"},
		filepath.Join(LedgerDir, "n1-7.jsonl"): Mark{T: 10, E: "start", ID: "x", Queue: "q", Node: "n1"},
	}
	for name, v := range lines {
		w, err := Append(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(v); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := Save(filepath.Join(dir, RunFile), Run{Seed: 7, Settings: Settings{Lease: 15 * time.Second}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// add appends text to a file as it is.
func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	h, err := Read(written(t))
	if err != nil {
		t.Fatal(err)
	}
	if h.Run.Seed != 7 || h.Run.Settings.Lease != 15*time.Second || h.Final != nil {
		t.Errorf("run and final are %+v and %v", h.Run, h.Final)
	}
	want := Step{T: 2, Queue: "q", US: 3, Script: "enqueue", Who: "c", Turn: 1, Moves: []Move{{What: Store, ID: "x", To: "waiting", Max: 3}}}
	if len(h.Steps) != 1 || !reflect.DeepEqual(h.Steps[0], want) {
		t.Errorf("steps are %+v, not %+v", h.Steps, want)
	}
	if len(h.Marks) != 2 || h.Marks[0].Node != "n2" || h.Marks[1].Node != "n1" {
		t.Errorf("marks of two ledgers are not in the order of time: %+v", h.Marks)
	}
	if len(h.Ops) != 1 || len(h.Strikes) != 1 || len(h.Samples) != 1 {
		t.Errorf("there are %d ops, %d strikes, %d samples, not one of each", len(h.Ops), len(h.Strikes), len(h.Samples))
	}
	if us, _, ok := h.Clock.Redis(7); !ok || us != 100 {
		t.Errorf("the clock shows %d, %v", us, ok)
	}
}

func TestATornLastLineIsDropped(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]string{
		"in the middle of a word":       `{"t":11,"ph`,
		"a whole object but no newline": `{"t":11,"phase":"invoke"}`,
		"one byte":                      `{`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := written(t)
			add(t, filepath.Join(dir, ClientFile), tail)
			h, err := Read(dir)
			if err != nil || len(h.Ops) != 1 {
				t.Fatalf("there are %d ops, %v", len(h.Ops), err)
			}
		})
	}
}

func TestATornLineBeforeThatOfAnotherProcessIsDropped(t *testing.T) {
	t.Parallel()
	dir := written(t)
	add(t, filepath.Join(dir, ClientFile), `{"t":11,"phase":"inv`+`{"t":12,"phase":"ok","client":"d","n":1,"error":"{\"t\":"}`+"\n")
	h, err := Read(dir)
	if err != nil || len(h.Ops) != 2 || h.Ops[1].T != 12 || h.Ops[1].Phase != OK {
		t.Fatalf("ops are %+v, %v", h.Ops, err)
	}
}

func TestWhatCannotBeReadNamesFileAndLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm func(t *testing.T, dir string)
		want string
	}{
		"a torn line that is not the last one": {func(t *testing.T, dir string) {
			add(t, filepath.Join(dir, LogFile), "{\"t\":11,\n{\"t\":12}\n")
		}, "log.jsonl, line 2: "},
		"an empty line": {func(t *testing.T, dir string) { add(t, filepath.Join(dir, FaultsFile), "\n") }, "faults.jsonl, line 2: "},
		"a file that is a folder": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, SamplesFile)); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, SamplesFile), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "samples.jsonl, line 1: "},
		"a ledger with a broken line": {func(t *testing.T, dir string) {
			add(t, filepath.Join(dir, LedgerDir, "n1-7.jsonl"), "no\n")
		}, "n1-7.jsonl, line 2: "},
		"no run": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, RunFile)); err != nil {
				t.Fatal(err)
			}
		}, "run.json"},
		"a final that is torn": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, FinalFile), []byte(`{"t":1`), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "final.json: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := written(t)
			c.harm(t, dir)
			if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, without %q", err, c.want)
			}
		})
	}
}

func TestAMissingFileHasNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Save(filepath.Join(dir, RunFile), Run{}); err != nil {
		t.Fatal(err)
	}
	h, err := Read(dir)
	if err != nil || len(h.Ops)+len(h.Steps)+len(h.Marks) > 0 {
		t.Fatalf("read %+v, %v", h, err)
	}
	if _, _, ok := h.Clock.Redis(1); ok {
		t.Error("a clock without pairs knows the time")
	}
}

func TestSeveralWritersShareAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Save(filepath.Join(dir, RunFile), Run{}); err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 200
	var group sync.WaitGroup
	for i := range writers {
		w, err := Append(filepath.Join(dir, ClientFile))
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			defer w.Close()
			for n := range each {
				if err := w.Write(Op{Client: fmt.Sprint(i), N: n, Error: strings.Repeat("x", 500)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	h, err := Read(dir)
	if err != nil || len(h.Ops) != writers*each {
		t.Fatalf("%d lines came back, %v", len(h.Ops), err)
	}
}
