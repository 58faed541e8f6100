package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/plant"
)

// builder returns the path of the build with a bug.
type builder func(ctx context.Context, bug plant.Bug, skew bool) (string, error)

// examine makes all trials and tells of each. It reports whether every bug was
// found and every sound build passed.
func examine(ctx context.Context, o options, out io.Writer) (bool, error) {
	bugs := draw(o)
	if len(bugs) == 0 {
		return false, fmt.Errorf("no bug has %q in its name", o.only)
	}
	dir, err := folder(o.keep)
	if err != nil {
		return false, err
	}
	forge, err := newForge(ctx, dir)
	if err != nil {
		return false, err
	}
	begun, trials := time.Now(), plan(bugs, o.seed)
	fmt.Fprintf(out, "%d bugs, and %d plans that a sound build must pass; seed %d; %d at once\n", len(bugs), len(trials)-len(bugs), o.seed, o.together)
	good, err := hold(ctx, trials, o.together, forge.build, dir, out)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "It took %v.\n", time.Since(begun).Round(time.Second))
	if err := tidy(trials, dir, o.keep != ""); err != nil {
		return false, err
	}
	if o.keep != "" || !good {
		fmt.Fprintf(out, "The reports are in %s; `kelpie chaos check FOLDER` judges one again.\n", dir)
	}
	return good, nil
}

// hold holds all trials and prints their table. A build is made while the trials
// before it run. An error says why they could not be held at all.
func hold(ctx context.Context, trials []*trial, together int, build builder, dir string, out io.Writer) (bool, error) {
	clean, err := build(ctx, plant.Bug{}, false)
	if err != nil {
		return false, err
	}
	tell := teller{out: out, of: len(trials)}
	var all sync.WaitGroup
	free := make(chan struct{}, together)
	for _, t := range trials {
		binary, err := build(ctx, t.bug, t.skew)
		if ctx.Err() != nil {
			break
		}
		if t.err = err; err != nil {
			tell.ended(t)
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			tell.begins(t)
			t.run(ctx, clean, binary, dir)
			tell.ended(t)
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return table(out, trials), nil
}

// folder makes the folder of builds and reports.
func folder(keep string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "kelpie-selftest-")
	}
	dir, err := filepath.Abs(keep)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// tidy removes what nobody will look for: the builds and reports of trials that
// came out right, unless all is to be kept.
func tidy(trials []*trial, dir string, all bool) error {
	if all {
		return nil
	}
	wrong := false
	for _, t := range trials {
		if t.fault() != "" {
			wrong = true
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, "report-"+t.name())); err != nil {
			return err
		}
	}
	if wrong {
		return nil
	}
	return os.RemoveAll(dir)
}
