package herd

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

const (
	module = "github.com/kelpiehq/kelpie"
	// skewVariable says how far the wall clock is off, as time.ParseDuration reads
	// it.
	skewVariable = "KELPIE_CHAOS_SKEW"
)

// nowHead begins time.Now in the standard library; nowSkewed takes its place.
const (
	nowHead   = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	nowSkewed = `var chaosSkew = readChaosSkew()

func readChaosSkew() Duration {
	text, ok := syscall.Getenv("` + skewVariable + `")
	if !ok {
		return 0
	}
	d, err := ParseDuration(text)
	if err != nil {
		panic("` + skewVariable + `: " + err.Error())
	}
	return d
}

func Now() Time {
	sec, nsec, mono := runtimeNow()
	skewed := sec*1e9 + int64(nsec) + int64(chaosSkew)
	sec, nsec = skewed/1e9, int32(skewed%1e9)
`
	importHead    = "import (\n\t\"errors\"\n\t\"math/bits\"\n"
	importSkewed  = importHead + "\t\"syscall\"\n"
	timeInGoroot  = "src/time/time.go"
	skewedProgram = "kelpie-skewed"
)

// Skewed builds kelpie from the sources that the working folder belongs to, with
// a wall clock that is off by what KELPIE_CHAOS_SKEW says, and returns the path
// of the program, in dir. What runs on the monotonic clock (timers, deadlines,
// differences of two readings) is as it was. It needs the Go tool, and takes a
// minute the first time: everything is built upon the time package.
func Skewed(ctx context.Context, dir string) (string, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("a clock that is off needs the Go tool, to build kelpie with it")
	}
	source, err := ask(ctx, tool, "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil || source == "" {
		return "", errors.Join(errors.New("a clock that is off needs kelpie's sources: run in their folder"), err)
	}
	root, err := ask(ctx, tool, "env", "GOROOT")
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	overlay, err := writeOverlay(dir, filepath.Join(root, filepath.FromSlash(timeInGoroot)))
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, skewedProgram)
	build := exec.CommandContext(ctx, tool, "build", "-overlay", overlay, "-o", program, "./cmd/kelpie")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kelpie with a clock that is off: %w: %s", err, bytes.TrimSpace(out))
	}
	return program, nil
}

// SkewedTime writes the standard library's time.go with a clock that is off into
// dir. It returns the paths of the original and of the changed file, for builds
// that replace more than that.
func SkewedTime(ctx context.Context, dir string) (original, changed string, err error) {
	root, err := ask(ctx, "go", "env", "GOROOT")
	if err != nil {
		return "", "", err
	}
	original = filepath.Join(root, filepath.FromSlash(timeInGoroot))
	changed, err = writeSkewed(dir, original)
	return original, changed, err
}

// writeSkewed writes the changed file and returns its path.
func writeSkewed(dir, original string) (changed string, err error) {
	text, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("the sources of the standard library: %w", err)
	}
	skewed, err := skewTime(string(text))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	changed = filepath.Join(dir, "time.go.skewed")
	return changed, os.WriteFile(changed, []byte(skewed), 0o644)
}

// writeOverlay writes the changed file and the list for go build, and returns
// the path of the latter.
func writeOverlay(dir, original string) (string, error) {
	changed, err := writeSkewed(dir, original)
	if err != nil {
		return "", err
	}
	pairs, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, pairs, 0o644)
}

// skewTime changes the text of the standard library's time.go.
func skewTime(text string) (string, error) {
	if strings.Count(text, nowHead) != 1 || strings.Count(text, importHead) != 1 {
		return "", errors.New("time.Now of this Go release is written otherwise than expected: its clock cannot be moved")
	}
	return strings.Replace(strings.Replace(text, nowHead, nowSkewed, 1), importHead, importSkewed, 1), nil
}

func ask(ctx context.Context, tool string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, tool, args...)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(faults.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
