package main

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
)

// newLog returns a log for a person at a terminal, or for a machine. A reader
// that has left must not end a node: what cannot be written is dropped.
func newLog(w io.Writer, level zerolog.Level) zerolog.Logger {
	zerolog.TimeFieldFormat = stamp
	zerolog.ErrorHandler = func(error) {}
	if isTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly + ".000", NoColor: os.Getenv("NO_COLOR") != ""}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}
