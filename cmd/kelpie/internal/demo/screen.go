package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kelpiehq/kelpie/queue"
)

// scene is what the live screen shows at one moment.
type scene struct {
	elapsed  time.Duration
	store    string
	look     look
	changes  int
	gone     []string // names of killed nodes
	accepted int
	tally    tally
	events   []string
}

// Smallest screen that is drawn for; a larger one shows more events.
const screenRows, screenColumns = 24, 80

// draw returns the lines of a frame, at most rows-1 of at most columns-1
// characters, so that the terminal never scrolls or wraps.
func (s scene) draw(rows, columns int) []string {
	q := s.look.queue
	lines := []string{
		fmt.Sprintf("kelpie demo   %s   %.0f s of less than 60   Ctrl-C ends it", s.store, s.elapsed.Seconds()),
		"",
		fmt.Sprintf("  %-8s %-9s %8s %8s   %s", "node", "", "active", "beat", "members that it sees"),
	}
	lines = append(lines, s.members()...)
	lines = append(lines, "", s.sweeperLine(), "",
		fmt.Sprintf("  waiting %-6d delayed %-6d active %-6d dead %-6d", q.Waiting, q.Delayed, q.Active, q.Dead),
		fmt.Sprintf("  accepted %-5d delivered %-5d refused %-5d answered with an error %d", s.accepted, s.tally.taken, s.tally.refused, s.tally.faults),
		"  "+bar(s.tally.done, s.accepted, 50), "")
	room := max(0, rows-1-len(lines))
	events := s.events[max(0, len(s.events)-room):]
	for _, e := range events {
		lines = append(lines, "  "+e)
	}
	lines = lines[:min(len(lines), max(1, rows-1))]
	for i, line := range lines {
		lines[i] = strings.TrimRight(clip(line, columns-1), " ")
	}
	return lines
}

// members returns a line for each node, dead or alive.
func (s scene) members() []string {
	var lines []string
	for _, n := range s.look.nodes {
		if slices.Contains(s.gone, n.Name) {
			continue // Redis still believes in it
		}
		role := ""
		if n.Sweeper {
			role = "sweeper"
		}
		lines = append(lines, fmt.Sprintf("  %-8s %-9s %8d %6.1f s   %s", n.Name, role, n.Active, n.HeartbeatAge.Seconds(), names(n.Members)))
	}
	for _, name := range s.gone {
		lines = append(lines, fmt.Sprintf("  %-8s %-9s", name, "killed"))
	}
	return lines
}

// names drops boot suffixes and what is not a name.
func names(members []string) string {
	short := make([]string, len(members))
	for i, m := range members {
		short[i] = queue.NodeName(m)
	}
	slices.Sort(short)
	return strings.Join(short, " ")
}

func (s scene) sweeperLine() string {
	n, ok := s.look.sweeper()
	if !ok || slices.Contains(s.gone, n.Name) {
		return "  no sweeper now, " + count(s.changes, "change") + " so far"
	}
	return fmt.Sprintf("  %s sweeps, epoch %d, %s so far", n.Name, n.Epoch, count(s.changes, "change"))
}

// bar shows done of all in so many characters.
func bar(done, all, width int) string {
	if all == 0 {
		return strings.Repeat(".", width)
	}
	full := width * min(done, all) / all
	return strings.Repeat("#", full) + strings.Repeat(".", width-full) + fmt.Sprintf(" %d %%", 100*min(done, all)/all)
}

// count names a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// clip cuts a line to so many characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(0, n)])
}

// screen redraws frames in place, with nothing but the sequences that every
// terminal knows: up, clear to the end of the line, clear below. It changes no
// mode of the terminal, so there is nothing to restore.
type screen struct {
	w     io.Writer
	lines int // of the last frame
}

func (s *screen) show(frame []string) {
	var b strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.lines)
	}
	for _, line := range frame {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.lines = len(frame)
	_, _ = io.WriteString(s.w, b.String()) // the outlet ends the demo when this fails
}
