package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// Names of the files.
const (
	JSONFile = "report.json"
	HTMLFile = "report.html"
)

// Write writes report.json and report.html into dir, which must be there, in the
// place of older ones. A reader sees each file whole or not at all. It changes
// neither h nor v. The page cannot keep report.json from being written.
func Write(dir string, h *history.History, v *check.Verdict) error {
	d := NewDocument(h, v)
	return errors.Join(writeJSON(dir, d), writeHTML(dir, h, d))
}

func writeJSON(dir string, d *Document) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", JSONFile, err)
	}
	return replace(filepath.Join(dir, JSONFile), append(text, '\n'))
}

func writeHTML(dir string, h *history.History, d *Document) error {
	text, err := render(h, d)
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, HTMLFile), text)
}

// replace puts a whole file in the place of an older one.
func replace(path string, text []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, text, 0o644); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}
