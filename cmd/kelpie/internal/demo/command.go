package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Command returns "kelpie demo". Its errors know their exit code (ExitCode).
func Command(version string) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Deliver webhooks through two kill -9, and check that none is lost",
		Long: `Delivers webhooks with three node processes on this machine and kills two of
them in the middle of their work: first the one that holds the most jobs, then
the one that is the sweeper. It ends by itself in under a minute.

Nothing needs to be installed. A redis-server or valkey-server (6.2 or later) on
the PATH is used if there is one, with AOF in a temporary folder; else a Redis
inside this process. Everything listens on 127.0.0.1 and free ports, and nothing
is left behind, also after Ctrl-C.

The closing table rests on what enqueue returned and what the receiver of the
webhooks saw, not on what the nodes say of themselves. On a real server each
recovery must take less than 3 s, and the first deliveries be less than 20 ms late
(p99); the latter is not judged where the machine's own timers come late. Exit
code 0: nothing was lost and all promises held; 1: some promise did not hold; 65:
bad input.`,
		Example: `  kelpie demo
  kelpie demo --json 2>/dev/null
  kelpie demo --input webhooks.jsonl   # {"event": "order.created", "payload": {...}} a line`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out, o.errors, o.version = cmd.OutOrStdout(), cmd.ErrOrStderr(), version
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.input, "input", "", "JSONL `FILE` of webhooks, each enqueued at least once, its payload byte for byte; default a small sample")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the closing table as one JSON object on stdout, the events on stderr")
	return cmd
}

// options are what the command line says.
type options struct {
	input   string
	json    bool
	version string
	out     io.Writer
	errors  io.Writer
	program string   // default: this one
	args    []string // before "node"
}

// run performs the demo with the signals and outputs of a command.
func (o *options) run(ctx context.Context) error {
	letters, err := loadLetters(o.input)
	if err != nil {
		return err
	}
	if o.program == "" {
		if o.program, err = os.Executable(); err != nil {
			return fmt.Errorf("path of this program: %w", err)
		}
	}
	ctx, cancel := context.WithCancelCause(cmp.Or(ctx, context.Background()))
	defer cancel(nil)
	caught := catch(cancel)

	out, errs := outlet{o.out, cancel}, outlet{o.errors, cancel}
	d := &demo{program: o.program, args: o.args, letters: letters, journal: &journal{begun: time.Now(), errors: errs}}
	size := terminal(o.out)
	switch {
	case o.json:
		d.journal.lines = errs
	case size == nil:
		d.journal.lines = out
	default:
		s := &screen{w: out}
		d.show = func(sc scene) { s.show(sc.draw(size())) }
	}
	r, err := d.run(ctx)
	if s := caught.release(); s != 0 {
		return &Error{Code: 128 + int(s), Err: fmt.Errorf("cut short by a signal (%s); nothing is left behind", s)}
	}
	if err != nil {
		return &Error{Code: exitFailed, Err: err}
	}
	return o.publish(r, out)
}

// publish prints how it ended, and fails if a promise did not hold.
func (o *options) publish(r report, out io.Writer) error {
	write := r.table
	if o.json {
		write = r.json
	}
	if err := write(out); err != nil {
		return &Error{Code: exitFailed, Err: err}
	}
	if len(r.broken) == 0 {
		return nil
	}
	return &Error{Code: exitFailed, Err: errors.New("the demo failed: " + strings.Join(r.broken, "; "))}
}

// terminal returns the size of the terminal behind w; nil if there is none that
// understands a redraw.
func terminal(w io.Writer) func() (rows, columns int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return nil
	}
	return func() (rows, columns int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil || rows < 2 || columns < 2 {
			return screenRows, screenColumns
		}
		return rows, columns
	}
}

// catcher ends the demo at a signal, and knows which one it was.
type catcher struct {
	signals chan os.Signal
	first   chan syscall.Signal
	done    chan struct{}
}

// catch listens for the signals of a person who has seen enough, or has closed
// the terminal. A broken pipe is none of them: main ignores it, and the write
// that fails ends the demo.
func catch(cancel func(error)) *catcher {
	c := &catcher{make(chan os.Signal, 1), make(chan syscall.Signal, 1), make(chan struct{})}
	signal.Notify(c.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // ends with release
		defer close(c.done)
		for s := range c.signals {
			select {
			case c.first <- s.(syscall.Signal):
			default: // the cleaning up is on its way, and short
			}
			cancel(context.Canceled)
		}
	}()
	return c
}

// release ends the listening and returns the first signal, 0 if there was none.
func (c *catcher) release() syscall.Signal {
	signal.Stop(c.signals)
	close(c.signals)
	<-c.done
	select {
	case s := <-c.first:
		return s
	default:
		return 0
	}
}
