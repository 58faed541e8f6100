package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// build is what a kelpie says of itself.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
}

func (b build) commit() string {
	if b.Modified {
		return b.Commit + ", modified"
	}
	return b.Commit
}

// askVersion asks the binary under test who it is, which also shows that it
// runs.
func askVersion(ctx context.Context, program string) (b build, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "version", "--json").Output()
	if err != nil {
		return b, fmt.Errorf("%s is no kelpie that runs here: %w", program, err)
	}
	if err := json.Unmarshal(out, &b); err != nil {
		return b, fmt.Errorf("%s is no kelpie: it answers %q to version --json", program, bytes.TrimSpace(out[:min(len(out), 100)]))
	}
	return b, nil
}

// system describes this machine.
func system() string {
	kernel := runtime.GOOS
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		kernel = text(name.Sysname[:]) + " " + text(name.Release[:])
	}
	return fmt.Sprintf("%s, %s, %d processors", kernel, runtime.GOARCH, runtime.NumCPU())
}

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return strings.TrimSpace(string(b))
}
