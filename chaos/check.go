package chaos

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/report"
)

// Check judges the history in dir and writes the report there. It starts
// nothing.
func Check(dir string) (*Result, error) {
	if _, err := os.Stat(filepath.Join(dir, history.RunFile)); err != nil {
		return nil, fmt.Errorf("%s holds no chaos run: %w", dir, err)
	}
	h, err := history.Read(dir)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	r := &Result{Dir: dir, History: h, Verdict: check.Judge(h)}
	if err := report.Write(dir, h, r.Verdict); err != nil {
		return r, fmt.Errorf("report: %w", err)
	}
	return r, nil
}
