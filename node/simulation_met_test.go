package node

import (
	"fmt"
	"strings"
)

// meet notes what the log does not tell: what was refused, and to what beats
// condemnations were held. world.mu is held.
func (w *world) meet(c *request, what string, answer []byte) {
	if what != "" {
		w.met[what]++
	}
	words, args := strings.Split(string(answer), "\r\n"), c.argv()
	if len(words) < 5 || len(args) < 1 {
		return
	}
	switch said := c.name + " " + words[2]; said {
	case "exchange STALE", "exchange GONE", "beat LOST", "enqueue STALE", "condemn ALIVE":
		w.met[said]++
	case "promote FENCED", "reclaim FENCED", "trim FENCED", "repair FENCED":
		w.met["FENCED"]++
	case "beat OK":
		w.beats[args[0]] = strings.TrimLeft(words[4], ":")
	case "condemn DONE":
		if w.met[said]++; w.beats[args[0]] != args[1] {
			w.wrong = append(w.wrong, fmt.Sprintf("condemned: %s by its beat of %s, but its last one was that of %s", args[0], args[1], w.beats[args[0]]))
		}
	}
}

func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// mustMeet is what some hundred seeds must have met, or they have shown little:
// fates of calls, and refusals that only faults bring about.
var mustMeet = []string{
	"slow", "lost", "answer lost", "late", "copied", "copy", "lost in the outage",
	"exchange STALE", "exchange GONE", "beat LOST", "enqueue STALE", "condemn DONE", "FENCED",
	"stale", "reclaim", "promote", "release", "dead",
}
