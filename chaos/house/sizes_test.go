package house

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// A longer file or function is a sign that a second concept wants a place of
// its own.
const maxFile, maxFunc = 400, 60

// allowed lists what may be longer, with the reason: "dir/file.go" or
// "dir/file.go:Func". An entry that is not needed any more is an error too.
var allowed = map[string]string{}

// empty names say where code was put, not what it does.
var emptyNames = []string{"util", "utils", "common", "types", "models", "helpers", "misc", "shared", "base"}

// tooLong returns what is too long in f, by name, with its length.
func tooLong(f file) map[string]int {
	found := map[string]int{}
	if f.test {
		return found
	}
	if f.lines > maxFile {
		found[f.path] = f.lines
	}
	for _, d := range f.tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
		if lines > maxFunc {
			found[f.path+":"+fn.Name.Name] = lines
		}
	}
	return found
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	t.Parallel()
	long := map[string]int{}
	for _, f := range source(t) {
		maps.Copy(long, tooLong(f))
	}
	for _, words := range judge(long, allowed) {
		t.Error(words)
	}
}

// judge compares what is too long with what may be.
func judge(long map[string]int, allowed map[string]string) []string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(long)) {
		if allowed[name] == "" {
			words = append(words, fmt.Sprintf("%s has %d lines; more than %d in a file or %d in a function hide a second concept: give it its own place, or allow it in chaos/house with the reason",
				name, long[name], maxFile, maxFunc))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if _, still := long[name]; !still {
			words = append(words, name+" is not too long any more: take it off the list in chaos/house")
		}
	}
	return words
}

func TestNoPackageHasAnEmptyName(t *testing.T) {
	t.Parallel()
	for _, f := range source(t) {
		if words := emptyName(f); words != "" {
			t.Error(words)
		}
	}
}

func emptyName(f file) string {
	for _, name := range []string{strings.TrimSuffix(f.tree.Name.Name, "_test"), path.Base(f.dir)} {
		if slices.Contains(emptyNames, name) {
			return fmt.Sprintf("%s: a package named %q says nothing about what it is for", f.path, name)
		}
	}
	return ""
}

func TestTheSizesCanBreak(t *testing.T) {
	t.Parallel()
	fn := func(lines int) string { return "func long() {\n" + strings.Repeat("\t_ = 1\n", lines-2) + "}\n" }
	for name, tt := range map[string]struct {
		path, text string
		want       string
	}{
		"60 lines are a function":         {"queue/a.go", "package queue\n" + fn(60), ""},
		"61 are too many":                 {"queue/a.go", "package queue\n" + fn(61), "queue/a.go:long has 61 lines"},
		"400 lines are a file":            {"queue/a.go", "package queue\n" + strings.Repeat("\n", 399), ""},
		"401 are too many":                {"queue/a.go", "package queue\n" + strings.Repeat("\n", 400), "queue/a.go has 401 lines"},
		"tests may be long":               {"queue/a_test.go", "package queue\n" + fn(500), ""},
		"what is allowed may be long":     {"queue/allowed.go", "package queue\n" + strings.Repeat("\n", 400), ""},
		"a package util says nothing":     {"queue/util/a.go", "package util\n", `named "util" says nothing`},
		"nor in a folder of another name": {"queue/x/a.go", "package common\n", `named "common" says nothing`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := parse(tt.path, []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			permits := map[string]string{}
			if strings.Contains(tt.path, "allowed") {
				permits[tt.path] = "for this test"
			}
			got := strings.Join(judge(tooLong(f), permits), "\n") + emptyName(f)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("says %q, want %q", got, tt.want)
			}
		})
	}
	if got := judge(nil, map[string]string{"queue/a.go": "was long"}); len(got) != 1 {
		t.Errorf("an entry without need: %q, want one complaint", got)
	}
}
