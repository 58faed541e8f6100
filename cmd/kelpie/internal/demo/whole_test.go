package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// closing is what --json prints.
type closing struct {
	Accepted, Delivered, Dead, Lost, Duplicates, Early int
	Recovery                                           []*int64            `json:"recovery_ms"`
	Late                                               map[string]*float64 `json:"lateness_ms"`
	Changes                                            int                 `json:"sweeper_changes"`
	Store                                              string
}

// buildKelpie builds the program whose nodes are going to be killed.
func buildKelpie(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kelpie")
	if out, err := exec.Command("go", "build", "-o", program, "../..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// TestTheWholeDemo holds everything but the figures: tests run side by side, and
// how late a job is then says more of the machine than of Kelpie.
func TestTheWholeDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the demo takes half a minute")
	}
	t.Parallel()
	program := buildKelpie(t)
	input := filepath.Join(t.TempDir(), "input.jsonl")
	if err := os.WriteFile(input, bytes.Repeat([]byte(`{"event":"odd.bytes","payload": { "n":18446744073709551615,"s":"\u00e9\/ 東 🐕 <&>" ,"x":1e+400}}`+"\n"), 40), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path  string
		args  []string
		store string
	}{
		"on a redis-server":             {os.Getenv("PATH"), []string{"--input", input}, ""},
		"without one, and with no PATH": {t.TempDir(), nil, "miniredis"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := exec.Command(program, append([]string{"demo", "--json"}, tt.args...)...)
			c.Env = append(os.Environ(), "TMPDIR="+dir, "PATH="+tt.path, "KELPIE_REDIS=redis://127.0.0.1:1/", "KELPIE_PREFIX=elsewhere")
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			begun := time.Now()
			err := c.Run()
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("it took %v, want less than a minute", took)
			}
			var exit *exec.ExitError
			slow := errors.As(err, &exit) && exit.ExitCode() == 1 && onlySlow(errs.String())
			if err != nil && !slow {
				t.Fatalf("%v\n%s", err, errs.String())
			}
			check(t, out.Bytes(), tt.store)
			if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
				t.Errorf("left behind: %v, %v", files, err)
			}
		})
	}
}

// onlySlow tells if the demo failed by figures that a busy machine explains.
func onlySlow(text string) bool {
	_, why, ok := strings.Cut(text, "the demo failed: ")
	for sentence := range strings.SplitSeq(why, "; ") {
		ok = ok && (strings.HasPrefix(sentence, "the lateness p99 is ") || strings.HasPrefix(sentence, "the recovery from the kill of "))
	}
	return ok
}

func check(t *testing.T, out []byte, store string) {
	t.Helper()
	var c closing
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatalf("stdout is %q: %v", out, err)
	}
	t.Logf("%s", out)
	if c.Accepted < 100 || c.Lost != 0 || c.Early != 0 || c.Delivered+c.Dead != c.Accepted || c.Dead == 0 {
		t.Errorf("%s: want nothing lost or early, and all of 100 or more either delivered or dead", out)
	}
	if len(c.Recovery) != 2 || c.Recovery[0] == nil || c.Recovery[1] == nil || c.Changes < 1 || c.Late["p99"] == nil {
		t.Errorf("%s: want two recoveries, and a change of the sweeper", out)
	}
	if store != "" && c.Store != store || store == "" && c.Store == "" {
		t.Errorf("store %q, want %q", c.Store, store)
	}
}
