package plant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Bug is a protection that is missing.
type Bug struct {
	Name       string
	Says       string   // what is missing
	Scenario   string   // whose plan shows it
	Invariants []string // one of them must be violated
	Skew       bool     // its nodes' clocks must be off: the build has that too
	Edits      []Edit
}

// Edit replaces the one place of Old in a file by New.
type Edit struct{ File, Old, New string }

// Apply returns the files that a bug changes, whole, by their paths below root.
func (b Bug) Apply(root string) (map[string][]byte, error) {
	changed := map[string][]byte{}
	for _, e := range b.Edits {
		text, ok := changed[e.File]
		if !ok {
			var err error
			if text, err = os.ReadFile(filepath.Join(root, e.File)); err != nil {
				return nil, fmt.Errorf("bug %s: %w", b.Name, err)
			}
		}
		if n := bytes.Count(text, []byte(e.Old)); n != 1 {
			return nil, fmt.Errorf("bug %s: %s has %d places of %q, not one: fit the bug to the code", b.Name, e.File, n, e.Old)
		}
		changed[e.File] = bytes.Replace(text, []byte(e.Old), []byte(e.New), 1)
	}
	return changed, nil
}

// Overlay writes the changed files and the overlay that names them into dir,
// and returns the path of the overlay. more has further replacements, by the
// path that is replaced.
func (b Bug) Overlay(root, dir string, more map[string]string) (string, error) {
	changed, err := b.Apply(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for from, to := range more {
		replace[from] = to
	}
	for file, text := range changed {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "__"))
		if err := os.WriteFile(copied, text, 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = copied
	}
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "  ")
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// Build makes the kelpie that has the bug, at path. dir is for its changed
// files; it must stay until the build is done.
func (b Bug) Build(ctx context.Context, root, dir, path string, more map[string]string) error {
	overlay, err := b.Overlay(root, dir, more)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-overlay", overlay, "-o", path, "./cmd/kelpie") // half the time to link
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("bug %s: %w: %s", b.Name, errors.Join(err, ctx.Err()), bytes.TrimSpace(out))
	}
	return nil
}

// Find returns the bug of a name.
func Find(name string) (Bug, bool) {
	for _, b := range Bugs() {
		if b.Name == name {
			return b, true
		}
	}
	return Bug{}, false
}
