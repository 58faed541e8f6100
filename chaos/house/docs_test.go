package house

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func document(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The program in README.md is the one that the compiler sees.
func TestReadmeShowsTheExample(t *testing.T) {
	t.Parallel()
	_, code, ok := strings.Cut(document(t, "README.md"), "```go\n")
	code, _, closed := strings.Cut(code, "```")
	_, example, found := strings.Cut(document(t, "node/example_test.go"), "package node_test\n\n")
	if !ok || !closed || !found {
		t.Fatal("README.md has no Go block, or node/example_test.go another package")
	}
	if strings.TrimSpace(code) != strings.TrimSpace(example) {
		t.Error("the Go block of README.md and node/example_test.go differ: copy the latter, without its package line")
	}
}

var (
	caseRow  = regexp.MustCompile(`(?m)^\| (C\d{3}) \| [^|]+ \| ([^|]+) \|$`)
	caseTest = regexp.MustCompile(`C\d{3}`)
	testName = regexp.MustCompile("`(Test\\w+)`")
	script   = regexp.MustCompile("`([a-z0-9_-]+\\.txtar)`")
	staged   = regexp.MustCompile("scenario `([a-z0-9-]+)`")
)

// scenarios returns the cases that each scenario of chaos runs stands for, as
// its source has them: this package imports nothing of ours.
func scenarios(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, f := range source(t) {
		if f.dir != "chaos/scenario" || f.test {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			name, cases := "", []string{}
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			for _, e := range lit.Elts {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				key := fmt.Sprint(kv.Key)
				switch value := kv.Value.(type) {
				case *ast.BasicLit:
					if key == "Name" {
						name = strings.Trim(value.Value, `"`)
					}
				case *ast.CompositeLit:
					for _, c := range value.Elts {
						if l, ok := c.(*ast.BasicLit); ok && key == "Cases" {
							cases = append(cases, strings.Trim(l.Value, `"`))
						}
					}
				}
			}
			if name != "" {
				all[name] = cases
			}
			return true
		})
	}
	return all
}

func TestScenariosAndCasesNameEachOther(t *testing.T) {
	t.Parallel()
	all, named := scenarios(t), map[string]bool{}
	if len(all) < 20 {
		t.Fatalf("read %d scenarios only", len(all))
	}
	for _, row := range caseRow.FindAllStringSubmatch(document(t, "docs/cases.md"), -1) {
		for _, m := range staged.FindAllStringSubmatch(row[2], -1) {
			named[m[1]+" "+row[1]] = true
			if !slices.Contains(all[m[1]], row[1]) {
				t.Errorf("%s: names the scenario %s, which is not there or does not name the case", row[1], m[1])
			}
		}
	}
	for name, cases := range all {
		for _, id := range cases {
			if !named[name+" "+id] {
				t.Errorf("scenario %s stands for %s, but docs/cases.md does not name it there", name, id)
			}
		}
	}
}

// Each case in docs/cases.md names tests that exist, or a reason; each test that
// names a case stands there.
func TestCasesAreListed(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{} // names of test functions
	ids := map[string]string{} // case -> a test that names it
	for _, f := range source(t) {
		if !f.test {
			continue
		}
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				tests[fn.Name.Name] = true
				for _, id := range caseTest.FindAllString(fn.Name.Name, -1) {
					ids[id] = f.path + " " + fn.Name.Name
				}
			}
		}
	}
	listed := map[string]bool{}
	for _, row := range caseRow.FindAllStringSubmatch(document(t, "docs/cases.md"), -1) {
		id, by := row[1], row[2]
		if listed[id] {
			t.Errorf("%s: listed twice", id)
		}
		listed[id] = true
		for _, m := range testName.FindAllStringSubmatch(by, -1) {
			if !tests[m[1]] {
				t.Errorf("%s: names the test %s, which is not there", id, m[1])
			}
		}
		for _, m := range script.FindAllStringSubmatch(by, -1) {
			text, err := os.ReadFile(filepath.Join("..", "..", "cmd/kelpie/testdata", m[1]))
			if err != nil {
				t.Errorf("%s: names the script %s, which is not there", id, m[1])
			} else if !strings.Contains(string(text), id) {
				t.Errorf("%s: names the script %s, which says nothing of it", id, m[1])
			}
		}
		if !testName.MatchString(by) && !script.MatchString(by) && !staged.MatchString(by) && len(by) < 20 {
			t.Errorf("%s: neither a test nor a reason", id)
		}
	}
	for id, at := range ids {
		if !listed[id] {
			t.Errorf("%s: tested by %s, but docs/cases.md does not list it", id, at)
		}
	}
	for _, id := range wanted {
		if !listed[id] {
			t.Errorf("%s: belongs to a kind that must be handled, but docs/cases.md does not list it", id)
		}
	}
}

// wanted are the cases of the kinds that are to be impossible here: crashes
// between two steps, orphans, duplicates, unknown results, attempts, clocks,
// webhooks and the command line.
var wanted = strings.Fields(`
	C001 C002 C004 C006
	C007 C008 C010
	C012 C013 C015 C016 C018 C020
	C029 C030 C032 C034
	C035 C037 C038 C039 C040 C042
	C043 C044 C046 C048 C049 C050 C052
	C156 C158 C160 C161 C163 C164 C166
	C186 C188 C190`)
