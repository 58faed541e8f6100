// Command selftest judges the judge of chaos runs: it builds kelpie without one
// protection at a time and demands that a run with it FAILs, within a minute, by
// an invariant that names the fault; and that the build with all of them PASSes
// the same plan.
//
//	go run ./chaos/selftest                  all bugs, two at a time
//	go run ./chaos/selftest -some 6          six, and the next six on the next day
//	go run ./chaos/selftest -only no-epoch   those whose name has this text
//
// Each trial is made once: the plans bring about the moment that a protection is
// made for (scenario, judged.go), so that nothing depends on luck. A run whose
// outcome is wrong keeps its folder.
//
// It needs the Go tool, the sources and a redis-server. It ends with 1 if a bug
// was missed or a sound build failed, with 2 if it could not do its work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are what the command line says.
type options struct {
	some, together int
	seed           uint64
	only, keep     string
}

func parse(args []string, errOut io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("selftest", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.IntVar(&o.some, "some", 0, "how many bugs, those that the seed points at; 0: all")
	f.IntVar(&o.together, "together", 2, "how many runs at once")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()/86400), "seed of the plans, and which bugs -some takes (default: the number of the day)")
	f.StringVar(&o.only, "only", "", "only bugs whose name has this text")
	f.StringVar(&o.keep, "keep", "", "folder for binaries and reports (default: a temporary one; only what went wrong is kept)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.together < 1 || o.some < 0 {
		f.Usage()
		return o, errors.New("bad arguments")
	}
	return o, nil
}

func run(args []string, out, errOut io.Writer) int {
	o, err := parse(args, errOut)
	if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	good, err := examine(ctx, o, out)
	switch {
	case err != nil:
		fmt.Fprintln(errOut, "selftest:", err)
		return 2
	case !good:
		return 1
	}
	return 0
}
