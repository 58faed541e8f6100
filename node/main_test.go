package node

import (
	"flag"
	"os"
	"testing"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// TestMain runs a node instead of the tests where child.spawn asks for it. Most
// tests here wait for timers of seconds, so many of them run side by side,
// whatever the number of cores.
func TestMain(m *testing.M) {
	if order := os.Getenv(childEnv); order != "" {
		os.Exit(runChild(order))
	}
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", "16")
	}
	redistest.Main(m)
}
