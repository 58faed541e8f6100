package server

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

var bannerVersion = regexp.MustCompile(`\bv=(\d+)\.(\d+)\.(\d+)`)

// Find returns the first redis-server or valkey-server on the PATH that is new
// enough, or else a word on one that is too old, "" if there is none at all.
func Find(ctx context.Context) (program, tooOld string) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, 5*time.Second)
		banner, err := exec.CommandContext(asked, path, "--version").Output()
		cancel()
		if err != nil {
			continue
		}
		version, ok := parseBanner(string(banner))
		if ok && !(queue.Server{Engine: "redis", Version: version}).TooOld() {
			return path, ""
		}
		tooOld = fmt.Sprintf("%s is %s, %s is needed", path, version, queue.MinVersion)
	}
	return "", tooOld
}

// parseBanner reads "Redis server v=7.0.15 sha=...".
func parseBanner(banner string) (version string, ok bool) {
	m := bannerVersion.FindStringSubmatch(banner)
	if m == nil {
		return "of an unknown version", false
	}
	return strings.Join(m[1:], "."), true
}
