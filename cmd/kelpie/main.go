package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main with its surroundings as arguments; it returns the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	// A closed pipe comes back as an error of the write: a list ends quietly, an
	// enqueue says where it stopped, and a node outlives the reader of its log.
	signal.Ignore(syscall.SIGPIPE)
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	unwritten := watchHelp(root)
	cmd, err := root.ExecuteContextC(context.Background())
	switch failure := writeFailure(err); {
	case err == nil && unwritten() != nil:
		err = ran{unwritten()}
	case failure != nil && !errors.As(err, new(ran)):
		err = ran{failure}
	}
	return report(errOut, cmd, err)
}

// action is the body of a command.
type action func(cmd *cobra.Command, args []string) error

// ran marks what an action returned. An error without the mark comes from
// cobra, which never got to run anything: the command line is wrong.
type ran struct{ error }

func (r ran) Unwrap() error { return r.error }

// runs makes an action the body of a command. The first SIGINT or SIGTERM ends
// its context, with the exit code in the cause; the second ends the process.
func runs(do action) action {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithCancelCause(cmd.Context())
		defer cancel(nil)
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(signals)
		done := make(chan struct{})
		watcher := make(chan struct{})
		go func() {
			defer close(watcher)
			select {
			case s := <-signals:
				signal.Stop(signals)
				cancel(interrupted{s})
			case <-done:
			}
		}()
		cmd.SetContext(ctx)
		err := do(cmd, args)
		close(done)
		<-watcher
		return mark(ctx, err)
	}
}

// mark adds to a failure that a signal was its cause.
func mark(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause, ok := context.Cause(ctx).(interrupted); ok {
		return ran{withCode(cause.code(), err)}
	}
	return ran{err}
}

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return "cut short by a signal (" + i.signal.String() + ")" }

// code follows the shells: 128 and the signal's number.
func (i interrupted) code() int {
	if s, ok := i.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitFailed
}
