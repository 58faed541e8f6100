package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// module is the prefix of our own import paths.
const module = "github.com/kelpiehq/kelpie"

// file is one Go file of the repository.
type file struct {
	path  string // slash-separated, from the top
	dir   string // of path, which is the package's path within the module
	test  bool
	lines int
	fset  *token.FileSet
	tree  *ast.File
}

// edge is one import.
type edge struct {
	from string // package within the module, as "node/webhook"
	to   string // the same for ours, else a whole import path
	ours bool
	test bool   // only a test imports it
	at   string // where
}

// source parses every Go file below the top of the repository.
func source(t *testing.T) []file {
	t.Helper()
	var files []file
	top := os.DirFS(filepath.Join("..", ".."))
	err := fs.WalkDir(top, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := fs.ReadFile(top, name)
		if err != nil {
			return err
		}
		f, err := parse(name, text)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("found no Go file at all")
	}
	return files
}

func parse(name string, text []byte) (file, error) {
	f := file{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), fset: token.NewFileSet()}
	f.lines = strings.Count(string(text), "\n")
	var err error
	f.tree, err = parser.ParseFile(f.fset, name, text, parser.SkipObjectResolution)
	return f, err
}

func edges(files []file) []edge {
	var found []edge
	for _, f := range files {
		for _, spec := range f.tree.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // the parser has accepted it
			}
			e := edge{from: f.dir, to: to, test: f.test, at: f.fset.Position(spec.Pos()).String()}
			if within, ok := strings.CutPrefix(to, module+"/"); ok {
				e.to, e.ours = within, true
			}
			found = append(found, e)
		}
	}
	return found
}

// below reports whether pkg is parent or lies below it.
func below(pkg, parent string) bool { return pkg == parent || strings.HasPrefix(pkg, parent+"/") }
