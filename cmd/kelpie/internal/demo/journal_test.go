package demo

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTheJournalKeepsTheLastEvents(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	j := &journal{begun: time.Now(), lines: &lines}
	for i := range keptEvents + 5 {
		j.say("event %d", i)
	}
	tail := j.tail()
	if len(tail) != keptEvents || !strings.HasSuffix(tail[0], "event 5") || !strings.HasSuffix(tail[keptEvents-1], fmt.Sprintf("event %d", keptEvents+4)) {
		t.Errorf("tail = %q", tail)
	}
	if n := strings.Count(lines.String(), "\n"); n != keptEvents+5 {
		t.Errorf("%d lines were printed, want all", n)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAnOutletWithoutReaderEndsTheDemo(t *testing.T) {
	t.Parallel()
	var gone error
	j := &journal{begun: time.Now(), lines: outlet{closedPipe{}, func(err error) { gone = err }}}
	j.say("is anybody there")
	if !errors.Is(gone, errOutputGone) {
		t.Errorf("the demo was told %v, want %v", gone, errOutputGone)
	}
}
