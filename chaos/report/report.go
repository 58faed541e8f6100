package report

import (
	"errors"
	"io"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// Names of the files.
const (
	JSONFile = "report.json"
	HTMLFile = "report.html"
)

// Write writes report.json and report.html into dir, which must be there, in the
// place of older ones. A reader sees each file whole or not at all.
func Write(dir string, h *history.History, v *check.Verdict) error {
	return errors.New("the report is not built yet")
}

// Table writes the verdict as text of 100 columns or a little more: the rules, what
// had to happen, figures, and of a broken rule the first details. Control
// characters of names are written as spaces.
func Table(w io.Writer, v *check.Verdict) error {
	return errors.New("the report is not built yet")
}
