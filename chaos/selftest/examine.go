package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault/herd"
	"github.com/kelpiehq/kelpie/chaos/plant"
)

// within is how long a run may take to find a bug.
const within = time.Minute

// trial is one run: of a bug, or of the sound build under the same plan.
type trial struct {
	bug      plant.Bug // no name: the sound build
	scenario string
	binary   string

	took    time.Duration
	verdict string
	by      []string // invariants that were violated
	err     error
}

// examine makes all trials and prints a line for each. It reports whether every
// bug was found and every sound build passed.
func examine(ctx context.Context, o options, out io.Writer) (bool, error) {
	dir := o.keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "kelpie-selftest-"); err != nil {
			return false, err
		}
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	bugs := draw(o)
	if len(bugs) == 0 {
		return false, fmt.Errorf("no bug has %q in its name", o.only)
	}
	root, err := sources(ctx)
	if err != nil {
		return false, err
	}
	o.kelpie = filepath.Join(dir, "kelpie")
	if err := build(ctx, root, o.kelpie); err != nil {
		return false, err
	}
	trials := plan(bugs, o.kelpie)
	fmt.Fprintf(out, "%d bugs and %d sound builds, seed %d, reports in %s\n", len(bugs), len(trials)-len(bugs), o.seed, dir)
	work(ctx, trials, o, root, dir, out)
	good := judge(trials, out)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if good && o.keep == "" {
		return true, os.RemoveAll(dir)
	}
	return good, nil
}

// draw chooses the bugs: all that fit, or as many as asked for, in an order that
// follows from the seed. Days that follow each other take others.
func draw(o options) []plant.Bug {
	all := slices.DeleteFunc(plant.Bugs(), func(b plant.Bug) bool { return !strings.Contains(b.Name, o.only) })
	if o.some == 0 || o.some >= len(all) {
		return all
	}
	r := rand.New(rand.NewPCG(1, 2)) // one order for ever: the seed says where in it
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	from := int(o.seed % uint64(len(all)) * uint64(o.some) % uint64(len(all)))
	return slices.Concat(all, all)[from : from+o.some]
}

// plan adds a sound build for each scenario that a bug uses.
func plan(bugs []plant.Bug, clean string) []*trial {
	var trials []*trial
	seen := map[string]bool{}
	for _, b := range bugs {
		if !seen[b.Scenario] {
			seen[b.Scenario] = true
			trials = append(trials, &trial{scenario: b.Scenario, binary: clean})
		}
		trials = append(trials, &trial{bug: b, scenario: b.Scenario})
	}
	return trials
}

// work runs the trials, some at once.
func work(ctx context.Context, trials []*trial, o options, root, dir string, out io.Writer) {
	var all sync.WaitGroup
	var print sync.Mutex
	free := make(chan struct{}, o.together)
	for _, t := range trials {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			t.run(ctx, o, root, dir)
			print.Lock()
			defer print.Unlock()
			fmt.Fprintln(out, t)
		})
	}
	all.Wait()
}

// run builds what it needs and makes one run.
func (t *trial) run(ctx context.Context, o options, root, dir string) {
	if t.bug.Name != "" {
		home := filepath.Join(dir, t.bug.Name)
		t.binary = filepath.Join(home, "kelpie")
		if t.err = os.MkdirAll(home, 0o755); t.err != nil {
			return
		}
		if t.err = t.build(ctx, root, home); t.err != nil {
			return
		}
	}
	report := filepath.Join(dir, "report-"+t.name())
	var said, grumble bytes.Buffer
	limited, cancel := context.WithTimeout(ctx, 3*within)
	defer cancel()
	args := []string{"chaos", "run", "--scenario", t.scenario, "--kelpie", t.binary,
		"--seed", strconv.FormatUint(o.seed, 10), "--report", report, "--json"}
	if t.bug.Skew {
		args = append(args, "--skewed", t.binary)
	}
	cmd := exec.CommandContext(limited, o.kelpie, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its own processes
	cmd.WaitDelay = 20 * time.Second
	cmd.Stdout, cmd.Stderr = &said, &grumble
	begun := time.Now()
	err := cmd.Run()
	t.took = time.Since(begun)
	if t.read(said.Bytes()) != nil {
		t.err = fmt.Errorf("no verdict: %w: %s", errors.Join(err, limited.Err()), last(grumble.String()))
	}
}

// build makes the binary with the bug; one that needs it gets a clock that can
// be off as well.
func (t *trial) build(ctx context.Context, root, home string) error {
	more := map[string]string{}
	if t.bug.Skew {
		original, changed, err := herd.SkewedTime(ctx, home)
		if err != nil {
			return err
		}
		more[original] = changed
	}
	return t.bug.Build(ctx, root, home, t.binary, more)
}

// read takes the verdict out of report.json.
func (t *trial) read(report []byte) error {
	var r struct {
		Verdict    string `json:"verdict"`
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
	for _, i := range r.Invariants {
		if i.Verdict == "FAIL" {
			t.by = append(t.by, i.Name)
		}
	}
	return nil
}

func (t *trial) name() string {
	if t.bug.Name == "" {
		return "sound-" + t.scenario
	}
	return t.bug.Name
}

// fault says what is wrong with the outcome; "" if it is as it must be.
func (t *trial) fault() string {
	named := slices.ContainsFunc(t.by, func(i string) bool { return slices.Contains(t.bug.Invariants, i) })
	switch {
	case t.err != nil:
		return t.err.Error()
	case t.bug.Name == "" && t.verdict != "PASS":
		return "a sound build must PASS"
	case t.bug.Name == "":
		return ""
	case t.verdict != "FAIL":
		return "the bug was missed"
	case !named:
		return "found, but not by " + strings.Join(t.bug.Invariants, " or ")
	case t.took > within:
		return fmt.Sprintf("found too late, after more than %v", within)
	}
	return ""
}

func (t *trial) String() string {
	mark, by := "ok  ", strings.Join(t.by, ", ")
	if t.fault() != "" {
		mark = "BAD "
	}
	return strings.TrimRight(fmt.Sprintf("%s %-28s %-14s %-8s %5.1f s  %s  %s", mark, t.name(), t.scenario, t.verdict, t.took.Seconds(), by, t.fault()), " ")
}

// judge prints what it comes to.
func judge(trials []*trial, out io.Writer) bool {
	bad := 0
	for _, t := range trials {
		if t.fault() != "" {
			bad++
		}
	}
	fmt.Fprintf(out, "%d of %d runs came out as they must\n", len(trials)-bad, len(trials))
	return bad == 0
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " / ")
}

// sources returns the folder of the module that this command belongs to.
func sources(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kelpiehq/kelpie").Output()
	if err != nil {
		return "", fmt.Errorf("the sources are needed, run it in their folder: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func build(ctx context.Context, root, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/kelpie")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
