package node

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/kelpiehq/kelpie/queue"
)

// handler runs one attempt of one kind.
type handler func(ctx context.Context, c *queue.Claim) error

// Handle makes h the handler of a kind on n. It is called before Run; a kind
// with a bad name or with two handlers is reported by Run.
//
// h runs on a goroutine of its own, as many at a time as Config.Workers. Its
// context ends when the attempt's timeout is over, when the job is cancelled,
// when the node stops or when it may have been replaced; context.Cause says
// which (queue.ErrTimeout, ErrCancelled, ErrShutdown, ErrSessionLost). Without
// error the job is completed. queue.Snooze, RetryIn, RetryAfter and Discard
// decide otherwise, and any other error fails the attempt. The same job may run
// elsewhere at the same time: use Job.Fence to guard effects of your own.
func Handle[In any](n *Node, kind queue.Kind[In], h func(context.Context, *queue.Job[In]) error) {
	n.handle(kind.Name(), func(ctx context.Context, c *queue.Claim) error {
		in, err := kind.Decode(c.Payload)
		if err != nil {
			return queue.Undecodable(err)
		}
		return h(ctx, &queue.Job[In]{Info: c.Info, In: in})
	})
}

func (n *Node) handle(kind string, h handler) {
	if err := queue.CheckName("kind", kind); err != nil {
		n.faults = append(n.faults, err)
	}
	if n.handlers[kind] != nil {
		n.faults = append(n.faults, fmt.Errorf("kind %q: has two handlers", kind))
	}
	n.handlers[kind] = h
}

// call runs a handler and turns a panic, and an end by runtime.Goexit, into an
// error. done is called in any case, on the handler's goroutine.
func call(ctx context.Context, h handler, c *queue.Claim, done func(error)) {
	err := error(&queue.PanicError{Value: "the handler ended its goroutine (runtime.Goexit)"})
	defer func() {
		if v := recover(); v != nil {
			err = &queue.PanicError{Value: v, Stack: debug.Stack()}
		}
		done(err)
	}()
	if b := c.Broken(); b != nil {
		err = queue.Undecodable(b)
		return
	}
	err = h(ctx, c)
}

// judge is outcome for errors of any kind: one with methods that panic fails the
// attempt as a panic of the handler does, and harms nobody else.
func judge(c *queue.Claim, node string, cause, err error) (s *queue.Settlement) {
	defer func() {
		if v := recover(); v != nil {
			s = outcome(c, node, cause, &queue.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	return outcome(c, node, cause, err)
}

// outcome judges what a handler returned, given why its context ended, if it
// did: what the node stopped by itself is handed back and spends nothing.
func outcome(c *queue.Claim, node string, cause, err error) *queue.Settlement {
	switch {
	case err == nil:
		return c.Settle(node, nil)
	case c.Broken() != nil:
		return c.Settle(node, err) // no handler ran: its context says nothing
	case errors.Is(cause, queue.ErrShutdown), errors.Is(cause, queue.ErrSessionLost), errors.Is(cause, queue.ErrCancelled):
		return c.Released()
	case errors.Is(cause, queue.ErrTimeout):
		return c.Settle(node, fmt.Errorf("%w: %w", queue.ErrTimeout, err))
	}
	return c.Settle(node, err)
}
