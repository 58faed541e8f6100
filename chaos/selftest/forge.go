package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kelpiehq/kelpie/chaos/fault/herd"
	"github.com/kelpiehq/kelpie/chaos/plant"
)

// forge makes the builds, one after the other: the Go tool uses all processors by
// itself.
type forge struct {
	root string            // of the sources
	dir  string            // of the builds
	made map[string]string // paths of the builds, by name
}

// newForge finds the sources of the module that this command belongs to.
func newForge(ctx context.Context, dir string) (*forge, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kelpiehq/kelpie").Output()
	if err != nil {
		return nil, fmt.Errorf("the sources are needed, run it in their folder: %w", err)
	}
	return &forge{root: strings.TrimSpace(string(out)), dir: dir, made: map[string]string{}}, nil
}

// build returns the path of the build with a bug, or of the sound one for the
// zero Bug. With skew its clock can be off.
func (f *forge) build(ctx context.Context, bug plant.Bug, skew bool) (string, error) {
	name := cmp.Or(bug.Name, "sound")
	if skew {
		name += "-skewed"
	}
	if path, ok := f.made[name]; ok {
		return path, nil
	}
	home := filepath.Join(f.dir, "build-"+name)
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", err
	}
	more := map[string]string{}
	if skew {
		original, changed, err := herd.SkewedTime(ctx, home)
		if err != nil {
			return "", err
		}
		more[original] = changed
	}
	path := filepath.Join(home, "kelpie")
	if err := bug.Build(ctx, f.root, home, path, more); err != nil {
		return "", err
	}
	f.made[name] = path
	return path, nil
}
