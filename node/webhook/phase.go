package webhook

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// phase says how far a request has come, so that a time-out can name what it
// waited for.
type phase int32

const (
	lookingUp phase = iota
	connecting
	shakingHands
	sending
	waiting
	reading
)

func (p phase) String() string {
	return [...]string{
		"looking up the host", "connecting", "shaking hands over TLS",
		"sending the request", "waiting for the answer", "reading the answer",
	}[p]
}

// progress is written by the transport's goroutines, also after a request was
// given up.
type progress struct{ at atomic.Int32 }

func (p *progress) get() phase { return phase(p.at.Load()) }

// reach never goes back: hooks of the sending and the reading side overlap.
func (p *progress) reach(to phase) {
	for old := p.at.Load(); old < int32(to); old = p.at.Load() {
		if p.at.CompareAndSwap(old, int32(to)) {
			return
		}
	}
}

// watchPhase returns a context that reports to the progress.
func watchPhase(ctx context.Context) (context.Context, *progress) {
	p := &progress{}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart:      func(string, string) { p.reach(connecting) },
		TLSHandshakeStart: func() { p.reach(shakingHands) },
		GotConn:           func(httptrace.GotConnInfo) { p.reach(sending) },
		WroteRequest: func(w httptrace.WroteRequestInfo) {
			if w.Err == nil { // it is also called for a request that was given up
				p.reach(waiting)
			}
		},
		GotFirstResponseByte: func() { p.reach(reading) },
	}), p
}

// timeoutError is the end of timeout_ms.
type timeoutError struct {
	after time.Duration
	phase phase
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("timed out after %v while %s", e.after, e.phase)
}
func (e *timeoutError) Timeout() bool { return true }

// noAnswerError is a request that failed on its way. The text may quote what the
// other side said, so it is bounded like an answer.
type noAnswerError struct {
	phase phase
	err   error
}

func (e *noAnswerError) Error() string {
	return "while " + e.phase.String() + ": " + clip(printable(e.err.Error()), excerptBytes)
}
func (e *noAnswerError) Unwrap() error { return e.err }
