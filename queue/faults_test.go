package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// answer is an error reply of Redis.
type answerError string

func (e answerError) Error() string { return string(e) }
func (answerError) RedisError()     {}

func TestFaultsHaveAKindAndACertainty(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, tt := range map[string]struct {
		err     error
		kind    error // nil: none is added
		unknown bool
	}{
		"out of memory":                          {answerError("OOM command not allowed when used memory > 'maxmemory'."), ErrFull, false},
		"out of memory in a script":              {answerError("ERR Error running script (call to f_1): @user_script:9: OOM command not allowed"), ErrFull, false},
		"a replica":                              {answerError("READONLY You can't write against a read only replica."), ErrReadOnly, false},
		"the disk is full":                       {answerError("MISCONF Errors writing to the AOF file: No space left on device"), ErrReadOnly, false},
		"too few replicas":                       {answerError("NOREPLICAS Not enough good replicas to write."), ErrReadOnly, false},
		"no login":                               {answerError("NOAUTH Authentication required."), ErrRefused, false},
		"a wrong password":                       {answerError("WRONGPASS invalid username-password pair or user is disabled."), ErrRefused, false},
		"a missing right":                        {answerError("NOPERM this user has no permissions to run the 'evalsha' command"), ErrRefused, false},
		"still loading":                          {answerError("LOADING Redis is loading the dataset in memory"), ErrBusy, false},
		"a long script":                          {answerError("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), ErrBusy, false},
		"too many clients":                       {answerError("ERR max number of clients reached"), ErrBusy, false},
		"a wrong type":                           {answerError("WRONGTYPE Operation against a key holding the wrong kind of value"), ErrWrongType, false},
		"a wrong type as miniredis says it":      {answerError("ERR Error compiling script (new function): :15: WRONGTYPE Operation against"), ErrWrongType, false},
		"cluster mode":                           {answerError("MOVED 1234 10.0.0.1:6379"), ErrCluster, false},
		"an answer that nobody knows":            {answerError("ERR something new"), nil, false},
		"a refused connection":                   {dial, ErrUnreachable, false},
		"a missing socket":                       {&net.OpError{Op: "dial", Net: "unix", Err: syscall.ENOENT}, ErrUnreachable, false},
		"no free connection":                     {redis.ErrPoolTimeout, ErrUnreachable, false},
		"a connection that broke after sending":  {io.EOF, ErrUnreachable, true},
		"a reset connection":                     {&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, ErrUnreachable, true},
		"an answer that cannot be read":          {errors.New("redis: can't parse reply"), ErrUnreachable, true},
		"a time-out after sending":               {&net.OpError{Op: "read", Net: "tcp", Err: context.DeadlineExceeded}, ErrUnreachable, true},
		"a context that ended while it waited":   {context.Canceled, nil, true},
		"a closed client of go-redis":            {redis.ErrClosed, ErrClosed, false},
		"a known id":                             {ErrExists, nil, false},
		"an older turn":                          {ErrStale, nil, false},
		"an older epoch":                         {&FencedError{Seen: 7}, nil, false},
		"no such job":                            {ErrNoJob, nil, false},
		"a session that was condemned":           {ErrGone, nil, false},
		"a question before the command, no sent": {notSent(io.EOF), nil, false},
		"an unknown result":                      {fmt.Errorf("%w: %w", ErrUnknown, io.EOF), ErrUnreachable, true},
		"a command that was too old":             {fmt.Errorf("%w: the command was old", ErrUnknown), nil, true},
		"a turn that was overtaken":              {fmt.Errorf("%w: %w", ErrUnknown, ErrStale), nil, true},
		"too large a payload":                    {fmt.Errorf("%w%w", ErrTooLarge, bad), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := wrap("enqueue", q, "j1", tt.err)
			if got := IsUnknown(err); got != tt.unknown {
				t.Errorf("IsUnknown is %v, want %v", got, tt.unknown)
			}
			if tt.kind != nil && !errors.Is(err, tt.kind) {
				t.Errorf("%v is not %v", err, tt.kind)
			}
			if cause := (*notSentError)(nil); !errors.Is(err, tt.err) && !errors.As(err, &cause) {
				t.Errorf("%v has lost its cause", err)
			}
			if kind, _ := explain(tt.err); kind != tt.kind {
				t.Errorf("the kind is %v, want %v", kind, tt.kind)
			}
			op := (*OpError)(nil)
			if !errors.As(err, &op) || op.Op != "enqueue" || op.Queue != q || op.Job != "j1" {
				t.Errorf("%v does not say which move, queue and job", err)
			}
			if again := wrap("read", "", "", err); again.Error() != err.Error() {
				t.Errorf("wrapped twice: %v", again)
			}
		})
	}
	if wrap("read", q, "", nil) != nil || IsUnknown(nil) {
		t.Error("no error became one")
	}
}

func TestAnErrorReadsAsASentence(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"revive in queue mail, job j1: no such job":                                              wrap("revive", q, "j1", ErrNoJob),
		"enqueue in queue mail, job j1: a job with this id exists":                               wrap("enqueue", q, "j1", ErrExists),
		"promote in queue mail: fenced: epoch 9 was seen here":                                   wrap("promote", q, "", &FencedError{9}),
		"beat: the session was declared dead":                                                    wrap("beat", "", "", ErrGone),
		"beat: Redis does not accept writes: READONLY You can't write":                           wrap("beat", "", "", answerError("READONLY You can't write")),
		"describe in queue mail: a key of the job space holds something else: WRONGTYPE for key": wrap("describe", q, "", answerError("WRONGTYPE for key")),
	} {
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}
