package redistest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// oldest is the oldest Redis that has what the scripts need.
var oldest = version{6, 2}

const advice = `no Redis for tests: put redis-server or valkey-server %v or later on the PATH, ` +
	`start a Docker engine, or run "make test", which installs one%s`

// plan says what to start.
type plan struct {
	container bool
	image     string // container
	program   string // process
}

// choose follows KELPIE_TEST_BACKEND, else takes the first that is there: a
// program, then a Docker engine.
func choose() (plan, error) {
	container := plan{container: true, image: cmp.Or(os.Getenv("KELPIE_TEST_IMAGE"), "redis:7-alpine")}
	switch kind := os.Getenv("KELPIE_TEST_BACKEND"); kind {
	case "container":
		return container, nil
	case "process":
		return chooseProgram()
	case "":
		p, err := chooseProgram()
		if err != nil && dockerAnswers() {
			return container, nil
		}
		return p, err
	default:
		return plan{}, fmt.Errorf("KELPIE_TEST_BACKEND %q: must be process or container", kind)
	}
}

// chooseProgram takes the program that KELPIE_TEST_REDIS names, else the first
// on the PATH or in .cache/bin that is new enough.
func chooseProgram() (plan, error) {
	candidates := candidates()
	if named := os.Getenv("KELPIE_TEST_REDIS"); named != "" {
		candidates = []string{named}
	}
	var tooOld string
	for _, program := range candidates {
		v, err := programVersion(program)
		switch {
		case err != nil && len(candidates) == 1 && program == os.Getenv("KELPIE_TEST_REDIS"):
			return plan{}, fmt.Errorf("KELPIE_TEST_REDIS %s: %w", program, err)
		case err != nil:
		case v.less(oldest):
			tooOld = fmt.Sprintf(" (%s is %v, which is too old)", program, v)
		default:
			return plan{program: program}, nil
		}
	}
	return plan{}, fmt.Errorf(advice, oldest, tooOld)
}

// candidates lists the servers on the PATH and the one that "make test" keeps
// beside go.mod.
func candidates() []string {
	var found []string
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if root := moduleRoot(); root != "" {
		dirs = append(dirs, filepath.Join(root, ".cache", "bin"))
	}
	for _, dir := range dirs {
		for _, name := range []string{"redis-server", "valkey-server"} {
			if program, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(program) {
				found = append(found, program)
			}
		}
	}
	return found
}

func moduleRoot() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// version is major and minor.
type version [2]int

func (v version) less(w version) bool { return v[0] < w[0] || v[0] == w[0] && v[1] < w[1] }
func (v version) String() string      { return fmt.Sprintf("%d.%d", v[0], v[1]) }

var (
	versionInBanner = regexp.MustCompile(`\bv=(\d+)\.(\d+)`)
	versionInInfo   = regexp.MustCompile(`(?m)^(?:valkey|redis)_version:(\S+)`)
)

// programVersion asks the program: "Redis server v=7.0.15 sha=...".
func programVersion(program string) (version, error) {
	out, err := exec.Command(program, "--version").CombinedOutput()
	if err != nil {
		return version{}, fmt.Errorf("--version: %w", err)
	}
	return parseBanner(string(out))
}

func parseBanner(banner string) (version, error) {
	m := versionInBanner.FindStringSubmatch(banner)
	if m == nil {
		return version{}, fmt.Errorf("no version in %q", banner)
	}
	major, err := strconv.Atoi(m[1])
	if err != nil {
		return version{}, err
	}
	minor, err := strconv.Atoi(m[2])
	return version{major, minor}, err
}

// versionFromInfo prefers valkey_version: Valkey's redis_version is 7.2.4 for
// ever.
func versionFromInfo(info string) string {
	var found string
	for _, m := range versionInInfo.FindAllStringSubmatch(info, -1) {
		if found == "" || strings.HasPrefix(m[0], "valkey") {
			found = m[1]
		}
	}
	return found
}
