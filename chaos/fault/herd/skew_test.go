package herd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// standardTime is the path of the standard library's time.go.
func standardTime(t *testing.T) string {
	t.Helper()
	root, err := ask(t.Context(), "go", "env", "GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, filepath.FromSlash(timeInGoroot))
}

func TestTimeIsChangedOnlyAsFarAsItIsUnderstood(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(standardTime(t))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := skewTime(string(text))
	if err != nil || !strings.Contains(changed, skewVariable) || len(changed)-len(text) > 1000 {
		t.Errorf("skewTime of this release: %v, %d bytes more", err, len(changed)-len(text))
	}
	for _, other := range []string{"", strings.Replace(string(text), "mono := runtimeNow()\n\tif", "m := now()\n\tif", 1), string(text) + "\n" + nowHead} {
		if _, err := skewTime(other); err == nil && other != string(text) {
			t.Error("a file that is written otherwise was changed")
		}
	}
}

// clock is a program that prints both clocks.
const clock = `package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	begun := time.Now()
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	time.Sleep(20 * time.Millisecond)
	fmt.Println(begun.UnixMicro(), t.Nano()/1000, time.Since(begun).Microseconds())
}
`

func TestAProgramBuiltWithTheOverlayHasAnotherWallClockAndTheSameMonotonicOne(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the standard library anew")
	}
	dir := t.TempDir()
	overlay, err := writeOverlay(dir, standardTime(t))
	if err != nil {
		t.Fatal(err)
	}
	source, program := filepath.Join(dir, "clock.go"), filepath.Join(dir, "clock")
	if err := os.WriteFile(source, []byte(clock), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	for name, tt := range map[string]struct {
		skew string
		want time.Duration
	}{
		"two minutes ahead":  {"120s", 2 * time.Minute},
		"two minutes behind": {"-2m", -2 * time.Minute},
		"less than a second": {"-400ms", -400 * time.Millisecond},
		"not at all":         {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(program)
			if tt.skew != "" {
				cmd.Env = append(os.Environ(), skewVariable+"="+tt.skew)
			}
			before := time.Now()
			out, err := cmd.Output()
			after := time.Now()
			if err != nil {
				t.Fatal(err)
			}
			fields := strings.Fields(string(out))
			wall, _ := strconv.ParseInt(fields[0], 10, 64)
			slept, _ := strconv.ParseInt(fields[2], 10, 64)
			off := time.UnixMicro(wall)
			if off.Before(before.Add(tt.want-time.Millisecond)) || off.After(after.Add(tt.want+time.Millisecond)) {
				t.Errorf("its clock shows %v, want %v after %v", off, tt.want, before)
			}
			if slept < 20_000 || time.Duration(slept)*time.Microsecond > after.Sub(before) {
				t.Errorf("it slept %d µs by its own measure, want 20 ms", slept)
			}
		})
	}
	if out, err := func() ([]byte, error) {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), skewVariable+"=soon")
		return cmd.CombinedOutput()
	}(); err == nil || !strings.Contains(string(out), skewVariable) {
		t.Errorf("a skew that says nothing: %v, %s", err, out)
	}
}
