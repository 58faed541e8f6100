package herd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// kelpie is the program under test.
var kelpie string

// TestMain builds it once, in a kennel's folder, which goes with this process.
// It also plays a runner that makes namespaces and waits to be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "runner" {
		wait(os.Args[2])
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

// wait makes namespaces with an idle process in one, says its id, and waits.
func wait(dir string) {
	k, err := process.Open(process.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	s := Spec{Kennel: k, Kelpie: "kelpie", Dir: dir, RedisURL: func(int) string { return "" }, Netns: true}
	s.Settings.Nodes = 2
	h, err := New(s)
	if err != nil {
		panic(err)
	}
	if err := h.Open(context.Background()); err != nil {
		panic(err)
	}
	program, args := h.network.enter(0, "sleep", []string{"600"})
	c, err := k.Start(process.Command{Name: "sleep", Program: program, Args: args})
	if err != nil {
		panic(err)
	}
	fmt.Println(h.network.(*namespaces).id, c.PID())
	for {
		time.Sleep(time.Hour)
	}
}
