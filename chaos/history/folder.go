package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Names of the files.
const (
	RunFile     = "run.json"
	ClientFile  = "client.jsonl"
	LedgerDir   = "ledger"
	LogFile     = "log.jsonl"
	FaultsFile  = "faults.jsonl"
	SamplesFile = "samples.jsonl"
	ClockFile   = "clock.jsonl"
	FinalFile   = "final.json"
)

// Writer appends lines to one file. Each line is one write, so several processes
// may share the file, and one that is killed tears nothing but its own last
// line. It is safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	f  *os.File
}

// Append opens a file for lines; it and its folder are made if they are missing.
func Append(path string) (*Writer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &Writer{f: f}, nil
}

// Write appends v as one line.
func (w *Writer) Write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.f.Write(append(line, '\n'))
	return err
}

// Close closes the file.
func (w *Writer) Close() error { return w.f.Close() }

// Save writes v as a whole file.
func Save(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// History is a whole folder.
type History struct {
	Run     Run
	Ops     []Op
	Marks   []Mark // of all ledgers, by T
	Steps   []Step // as they were read
	Strikes []Strike
	Samples []Sample
	Clock   *Clock
	Final   *Final // nil: the run never came to its end
}

// Read reads a folder. A torn last line is dropped, anything else that cannot be
// read is an error that names file and line.
func Read(dir string) (*History, error) {
	h := &History{}
	if err := load(filepath.Join(dir, RunFile), &h.Run); err != nil {
		return nil, err
	}
	var ticks []Tick
	err := errors.Join(
		lines(filepath.Join(dir, ClientFile), &h.Ops),
		lines(filepath.Join(dir, LogFile), &h.Steps),
		lines(filepath.Join(dir, FaultsFile), &h.Strikes),
		lines(filepath.Join(dir, SamplesFile), &h.Samples),
		lines(filepath.Join(dir, ClockFile), &ticks),
		ledgers(filepath.Join(dir, LedgerDir), &h.Marks),
	)
	if err != nil {
		return nil, err
	}
	h.Clock = NewClock(ticks)
	var final Final
	switch err := load(filepath.Join(dir, FinalFile), &final); {
	case err == nil:
		h.Final = &final
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return h, nil
}

func load(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func ledgers(dir string, to *[]Mark) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := lines(file, to); err != nil {
			return err
		}
	}
	slices.SortStableFunc(*to, func(a, b Mark) int { return cmp.Compare(a.T, b.T) })
	return nil
}

// lineStart is how each line begins. It is in no text within a line, since there
// a quotation mark is escaped.
var lineStart = []byte(`{"t":`)

// lines appends what a file has; one that is missing has nothing. In a file that
// several processes share, what a killed one left of its last line is followed
// by the line of another one, and is dropped.
func lines[T any](path string, to *[]T) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // maybe in the middle of a torn line
		}
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			whole := bytes.LastIndex(line, lineStart)
			if whole <= 0 || json.Unmarshal(line[whole:], &v) != nil {
				return fmt.Errorf("%s, line %d: %w", path, n, err)
			}
		}
		*to = append(*to, v)
	}
}
