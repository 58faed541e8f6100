// Package process keeps child processes, so that none outlives who started it.
//
// A Kennel owns the processes that it started, the folder of what they print,
// and what else must be undone in the end (a mount, a network namespace). Close
// ends all of it. When the owner dies first, even by kill -9, a watchdog does it
// instead: a shell that reads, through a pipe, what there is, and acts when the
// pipe ends. Close uses it too, so there is one way to undo.
//
//	owner                       watchdog              child
//	start the child ───────────────────────────────▶ waits for a line
//	"in PID" ─────────────────▶ notes the group
//	release ───────────────────────────────────────▶ becomes the program
//	        ◀────────────────────────────── its end ─┘
//	"out PID" ────────────────▶ forgets the group
//
// A child becomes the program only when the watchdog knows of it. If the owner
// dies before, the child reads the end of its line and leaves. It never holds
// the watchdog's pipe, so one that is stopped does not hold up the others' end.
//
// Each child leads a process group, which dies as a whole.
//
// Not promised: a process that leaves its group and its parent (setsid, twice
// forked) is not found; and who kills the watchdog as well has to clean up
// himself.
package process
