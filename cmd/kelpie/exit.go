package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/kelpiehq/kelpie/node"
	"github.com/kelpiehq/kelpie/queue"
)

// Exit codes. Above 63 they are those of sysexits.h.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnproven    = 3
	exitData        = 65
	exitNotFound    = 66
	exitUnreachable = 69
	exitRefused     = 77
	exitConfig      = 78
)

// exitHelp is the table for people.
const exitHelp = `Exit codes:
  0    done; also when the reader of a list closes the pipe
  1    failed, or done in part: stderr names what failed. Also when Redis takes
       no writes (a replica, out of memory, MISCONF), when a key holds something
       else, and when it is not known whether a command was applied (it says so)
  2    the command line is wrong: unknown command or flag, a value outside its rule
  3    inconclusive: a chaos run that shows neither that all held nor what broke
  65   the input data are bad: broken JSONL without one good line, a payload over
       the limit
  66   no such job, queue or node
  69   Redis is not reachable, or still loading
  77   Redis refused the login or the right
  78   the configuration is bad: an environment variable outside its rule, settings
       that do not fit together, a Redis in cluster mode or too old, data of
       another format
  130  cut short by SIGINT (a node: by the second one)
  143  cut short by SIGTERM (a node: by the second one)`

// fault is an error with what the caller should know of it besides.
type fault struct {
	err  error
	code int    // exit code
	hint string // may be empty
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// newFault makes a fault from a sentence; hint may be empty.
func newFault(code int, hint, format string, args ...any) error {
	return &fault{err: fmt.Errorf(format, args...), code: code, hint: hint}
}

func usage(format string, args ...any) error   { return newFault(exitUsage, "", format, args...) }
func badData(format string, args ...any) error { return newFault(exitData, "", format, args...) }
func failed(format string, args ...any) error  { return newFault(exitFailed, "", format, args...) }

func notFound(hint, format string, args ...any) error {
	return newFault(exitNotFound, hint, format, args...)
}

func withCode(code int, err error) error {
	return &fault{err: err, code: code, hint: hintOf(err)}
}

func withHint(hint string, err error) error {
	return &fault{err: err, code: codeOf(err), hint: hint}
}

func hintOf(err error) string {
	var f *fault
	if errors.As(err, &f) {
		return f.hint
	}
	return ""
}

// codes says which code a known error has; the first that fits counts. A result
// that is unknown comes first, whatever made it unknown: who reads "not
// reachable" would take it that nothing was done.
var codes = []struct {
	err  error
	code int
}{
	{queue.ErrUnknown, exitFailed},
	{queue.ErrNoJob, exitNotFound}, {queue.ErrNoQueue, exitNotFound},
	{queue.ErrRefused, exitRefused},
	{queue.ErrUnreachable, exitUnreachable}, {queue.ErrBusy, exitUnreachable},
	{node.ErrConfig, exitConfig}, {queue.ErrCluster, exitConfig}, {queue.ErrFormat, exitConfig},
	{queue.ErrTooLarge, exitData},
	{queue.ErrBadInput, exitUsage},
}

func codeOf(err error) int {
	var f *fault
	if errors.As(err, &f) {
		return f.code
	}
	var own interface{ ExitCode() int }
	if errors.As(err, &own) {
		return own.ExitCode()
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return exitFailed
}

// errReaderLeft is the end of a command whose reader has left: nothing to say.
var errReaderLeft = errors.New("the reader of stdout has left")

// report says on w why a command ended, and returns the exit code.
func report(w io.Writer, cmd *cobra.Command, err error) int {
	if err == nil || errors.Is(err, errReaderLeft) {
		return exitOK
	}
	if !errors.As(err, new(ran)) {
		var f *fault
		if !errors.As(err, &f) {
			f = &fault{err: err, code: exitUsage}
		}
		if f.hint == "" {
			f.hint = fmt.Sprintf("%q tells more", cmd.CommandPath()+" --help")
		}
		err = f
	}
	if errors.As(err, new(silent)) {
		return codeOf(err)
	}
	fmt.Fprintln(w, "kelpie:", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintln(w, "hint:", hint)
	}
	return codeOf(err)
}

// silent is a failure that has been told on stderr already.
type silent struct{ error }

func (s silent) Unwrap() error { return s.error }

// unreachable says in one sentence that there is no Redis, with the part of the
// cause that a person can act on.
func unreachable(address string, err error) error {
	var dns *net.DNSError
	var errno syscall.Errno
	var why string
	switch {
	case errors.As(err, &dns):
		why = dns.Err + ": " + dns.Name
	case errors.As(err, &errno):
		why = errno.Error()
	case errors.Is(err, os.ErrDeadlineExceeded) || isTimeout(err):
		why = "no answer in time"
	case errors.Is(err, io.EOF):
		why = "it hung up"
	default:
		why = lastOf(err)
	}
	if errors.Is(err, queue.ErrBusy) {
		return newFault(exitUnreachable, "try again in a moment", "Redis at %s is busy or still loading: %s", address, lastOf(err))
	}
	return newFault(exitUnreachable, "does redis-server run there? --redis or KELPIE_REDIS names another one",
		"Redis at %s is not reachable: %s", address, why)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// lastOf returns what Redis itself said, else the text behind our own words.
func lastOf(err error) string {
	var answer redis.Error
	if errors.As(err, &answer) {
		return strings.TrimSuffix(answer.Error(), ".")
	}
	var op *queue.OpError
	text := err.Error()
	if errors.As(err, &op) {
		text = op.Err.Error()
	}
	for _, kind := range []error{queue.ErrUnreachable, queue.ErrBusy, queue.ErrReadOnly} {
		text = strings.TrimPrefix(text, kind.Error()+": ")
	}
	return text
}
