package demo

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// journal keeps what happened, for people: the last events for the screen, and
// each as a line if there is none.
type journal struct {
	begun  time.Time
	lines  io.Writer // nil: a screen shows them
	errors io.Writer

	mu   sync.Mutex
	last []string
}

const keptEvents = 16

// say adds an event with the seconds since the start.
func (j *journal) say(format string, args ...any) {
	line := fmt.Sprintf("%5.1f s  ", time.Since(j.begun).Seconds()) + fmt.Sprintf(format, args...)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = append(j.last, line)
	j.last = j.last[max(0, len(j.last)-keptEvents):]
	if j.lines != nil {
		fmt.Fprintln(j.lines, line) // an outlet ends the demo when this fails
	}
}

// testify shows what the processes left in their logs.
func (j *journal) testify(text string) { fmt.Fprint(j.errors, text) }

// tail returns the last events, the latest one last.
func (j *journal) tail() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.last...)
}

// outlet is an output that somebody must be reading: the first write that fails
// calls gone.
type outlet struct {
	io.Writer
	gone func(error)
}

func (o outlet) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.gone(fmt.Errorf("%w: %w", errOutputGone, err))
	}
	return n, err
}
