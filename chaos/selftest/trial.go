package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/chaos/plant"
)

const (
	within   = time.Minute      // in which a run must find its bug
	patience = 3 * time.Minute  // after which a run is ended
	farewell = 20 * time.Second // that it has then to end what it has started
)

// trial is one run: of a bug, or of the sound build under the same plan.
type trial struct {
	bug      plant.Bug // no name: the sound build
	scenario string
	seed     uint64
	skew     bool // its build has a clock that can be off

	took    time.Duration // of the run, without the build
	verdict string
	by      []string // invariants that were violated
	why     string   // the first reason of the verdict
	err     error
}

func (t *trial) name() string {
	if t.sound() {
		return "sound-" + t.scenario
	}
	return t.bug.Name
}

func (t *trial) sound() bool { return t.bug.Name == "" }

// run makes one run of a build, under the eyes of a clean one, and keeps its
// report in dir.
func (t *trial) run(ctx context.Context, clean, binary, dir string) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := []string{"chaos", "run", "--scenario", t.scenario, "--kelpie", binary,
		"--seed", strconv.FormatUint(t.seed, 10), "--report", filepath.Join(dir, "report-"+t.name()), "--json"}
	if t.skew {
		args = append(args, "--skewed", binary)
	}
	var said, grumble bytes.Buffer
	cmd := exec.CommandContext(limited, clean, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its own processes
	cmd.WaitDelay = farewell
	cmd.Stdout, cmd.Stderr = &said, &grumble
	begun := time.Now()
	err := cmd.Run()
	t.took = time.Since(begun)
	switch fault := t.read(said.Bytes()); {
	case limited.Err() != nil:
		t.err = fmt.Errorf("the run did not end: %w", limited.Err())
	case fault != nil:
		t.err = fmt.Errorf("no verdict: %w: %s", errors.Join(err, fault), last(grumble.String()))
	}
}

// read takes the verdict out of report.json.
func (t *trial) read(report []byte) error {
	var r struct {
		Verdict    string   `json:"verdict"`
		Why        []string `json:"why"`
		Invariants []struct {
			Name    string `json:"name"`
			Verdict string `json:"verdict"`
		} `json:"invariants"`
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return err
	}
	if r.Verdict == "" {
		return errors.New("the report has no verdict")
	}
	t.verdict = r.Verdict
	if len(r.Why) > 0 {
		t.why = r.Why[0]
	}
	for _, i := range r.Invariants {
		if i.Verdict == "FAIL" {
			t.by = append(t.by, i.Name)
		}
	}
	return nil
}

// fault says what is wrong with the outcome; "" if it is as it must be.
func (t *trial) fault() string {
	named := slices.ContainsFunc(t.by, func(i string) bool { return slices.Contains(t.bug.Invariants, i) })
	switch {
	case t.err != nil:
		return t.err.Error()
	case t.sound() && t.verdict != "PASS":
		return "a sound build must PASS: " + t.why
	case t.sound():
		return ""
	case t.verdict != "FAIL":
		return strings.TrimSuffix("the bug was missed: "+t.why, ": ")
	case !named:
		return "found, but not by " + strings.Join(t.bug.Invariants, " or ")
	case t.took > within:
		return fmt.Sprintf("found too late, after more than %v", within)
	}
	return ""
}

// last returns the last lines of a text.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " / ")
}
