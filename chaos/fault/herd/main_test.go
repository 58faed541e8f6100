package herd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// kelpie is the program under test.
var kelpie string

// runner is the part that it plays where there are namespaces.
var runner func(dir string)

// TestMain builds it once, in a kennel's folder, which goes with this process.
// It also plays a runner that waits to be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "runner" {
		runner(os.Args[2])
	}
	k, err := process.Open(process.Options{Name: "kelpie-herd-test"})
	if err != nil {
		panic(err)
	}
	kelpie = filepath.Join(k.Dir(), "kelpie")
	build := exec.Command("go", "build", "-o", kelpie, module+"/cmd/kelpie")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build kelpie: %v: %s\n", err, out)
		_ = k.Close()
		os.Exit(1)
	}
	redistest.Main(m, goleak.IgnoreCurrent()) // the kennel's watchdog stays until the end
}
