package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/kelpiehq/kelpie/chaos"
)

// chaosShow tells on stderr what a run does: sentences as lines and, on a
// terminal, below them a line that is drawn again and again. Its calls come one
// at a time.
type chaosShow struct {
	w       io.Writer
	begun   time.Time
	columns func() int // nil: not a terminal
	drawn   bool       // the last line is the one that is drawn
	told    time.Time  // when the state was last told as a plain line
}

func newChaosShow(w io.Writer) *chaosShow {
	s := &chaosShow{w: w, begun: time.Now()}
	f, ok := w.(*os.File)
	if kind := os.Getenv("TERM"); ok && term.IsTerminal(int(f.Fd())) && kind != "" && kind != "dumb" {
		s.columns = func() int {
			columns, _, err := term.GetSize(int(f.Fd()))
			if err != nil || columns < 20 {
				return 80
			}
			return columns
		}
	}
	return s
}

// tell prints a sentence. What cannot be written on stderr has nobody to read
// it, here and below.
func (s *chaosShow) tell(text string) {
	s.clear()
	fmt.Fprintf(s.w, "%5.1fs  %s\n", time.Since(s.begun).Seconds(), oneLine(text))
}

// show draws the state; where it cannot, it prints it every 10 s.
func (s *chaosShow) show(p chaos.Progress) {
	line := chaosLine(p)
	if s.columns == nil {
		if time.Since(s.told) >= 10*time.Second {
			s.told = time.Now()
			s.tell(line)
		}
		return
	}
	if room := []rune(line); len(room) >= s.columns() {
		line = string(room[:s.columns()-1])
	}
	fmt.Fprint(s.w, "\r"+line+"\x1b[K")
	s.drawn = true
}

// end leaves the cursor on a line of its own.
func (s *chaosShow) end() { s.clear() }

func (s *chaosShow) clear() {
	if s.drawn {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.drawn = false
	}
}

// chaosLine is the state of a run in one line.
func chaosLine(p chaos.Progress) string {
	parts := []string{fmt.Sprintf("%s seed %d", p.Scenario, p.Seed), p.Step}
	if p.Elapsed > 0 {
		parts = append(parts, fmt.Sprintf("%.0f/%.0f s", p.Elapsed.Seconds(), p.Duration.Seconds()))
	}
	parts = append(parts, fmt.Sprintf("faults %d/%d", p.Struck, p.Planned))
	if len(p.Now) > 0 {
		parts = append(parts, "now "+strings.Join(p.Now, " "))
	}
	parts = append(parts, fmt.Sprintf("%d accepted, %d ended, %d active", p.Accepted, p.Ended, p.Active))
	if p.Sweeper != "" {
		parts = append(parts, "sweeper "+p.Sweeper)
	}
	return oneLine(strings.Join(parts, " · "))
}
