package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// TestMain makes this test binary be kelpie as well, for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(checked{m}, map[string]func(){"kelpie": main})
}

// checked runs the tests without a developer's own settings, and looks for
// goroutines that are left.
type checked struct{ m *testing.M }

func (c checked) Run() int {
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "KELPIE_") && !strings.HasPrefix(name, "KELPIE_TEST_") {
			os.Unsetenv(name)
		}
	}
	code := c.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "after the tests:", err)
			return 1
		}
	}
	return code
}
