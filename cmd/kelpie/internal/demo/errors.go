package demo

import "errors"

// Exit codes that a failed demo asks for.
const (
	exitFailed = 1
	exitData   = 65
)

// Error is a failure and the exit code that it asks for.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ExitCode returns the code for os.Exit.
func (e *Error) ExitCode() int { return e.Code }

// errOutputGone ends a demo that nobody can see any more.
var errOutputGone = errors.New("the output is gone")
