package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

// bar shows on a terminal how much of the input is stored. The zero value shows
// nothing.
type bar struct{ p *progressbar.ProgressBar }

// newBar returns one that shows something only if a person looks at stderr, and
// does not get the ids on the same screen.
func newBar(cmd *cobra.Command, in io.Reader) bar {
	if !isTerminal(cmd.ErrOrStderr()) || isTerminal(cmd.OutOrStdout()) {
		return bar{}
	}
	return bar{progressbar.NewOptions64(sizeOf(in),
		progressbar.OptionSetWriter(cmd.ErrOrStderr()),
		progressbar.OptionSetDescription("enqueue"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(),
	)}
}

// sizeOf returns -1 for what has no size, such as a pipe.
func sizeOf(in io.Reader) int64 {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return -1
}

// set moves the bar; what cannot be drawn is not worth an error.
func (b bar) set(bytes int64) {
	if b.p != nil {
		_ = b.p.Set64(bytes)
	}
}

// clear makes room for a line of text.
func (b bar) clear() {
	if b.p != nil {
		_ = b.p.Clear()
	}
}
