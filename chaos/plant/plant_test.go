package plant

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEachBugFitsTheCode(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, b := range Bugs() {
		if names[b.Name] || b.Says == "" || b.Scenario == "" || len(b.Invariants) == 0 {
			t.Errorf("bug %q: its name must be its own, and it must say what is missing, which scenario shows it and by which invariant", b.Name)
		}
		names[b.Name] = true
		changed, err := b.Apply(root(t))
		if err != nil {
			t.Error(err)
		}
		if err == nil && len(changed) == 0 {
			t.Errorf("bug %s changes nothing", b.Name)
		}
	}
}

// The bugs in Go are put together here, so that one build shows that all of
// them compile; those in Lua are text to the compiler.
func TestTheBugsCompile(t *testing.T) {
	t.Parallel()
	together := Bug{Name: "all"}
	taken := map[string]bool{}
	for _, b := range Bugs() {
		for _, e := range b.Edits {
			if key := e.File + e.Old; strings.HasSuffix(e.File, ".go") && !taken[key] {
				taken[key] = true
				together.Edits = append(together.Edits, e)
			}
		}
	}
	overlay, err := together.Overlay(root(t), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./node", "./queue", "./sweeper")
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestABugThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]Edit{
		"a text that is not there":        {"go.mod", "no such line", "x"},
		"a text that is there too often":  {"go.mod", "github.com", "x"},
		"a file that is not there at all": {"none.go", "x", "y"},
	} {
		if _, err := (Bug{Name: "bad", Edits: []Edit{e}}).Apply(root(t)); err == nil || !strings.Contains(err.Error(), "bug bad") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
