package demo

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain also plays the parts of processes: "node" is one that does nothing,
// "perform" is a demo with such nodes, and "panic" one that falls over.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "node":
			select {}
		case "perform", "panic":
			os.Exit(perform(os.Args[1] == "panic"))
		}
	}
	goleak.VerifyTestMain(m)
}

// perform is main of a demo whose nodes never come together. It panics outside
// of any defer once its input is closed.
func perform(fallOver bool) int {
	signal.Ignore(syscall.SIGPIPE) // as main does
	o := options{program: os.Args[0], out: os.Stdout, errors: os.Stderr}
	if fallOver {
		go func() {
			_, _ = os.Stdin.Read(make([]byte, 1))
			panic("on purpose")
		}()
	}
	err := o.run(context.Background())
	fmt.Fprintln(os.Stderr, err)
	if e, ok := err.(*Error); ok {
		return e.ExitCode()
	}
	return 0
}
