package cluster

import (
	"log"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	repeatAfter = 30 * time.Second // an equal line is counted, not logged, before that
	lineWindow  = 10 * time.Second
	lineLimit   = 40  // lines per window
	lineLength  = 400 // bytes; longer ones are cut
	maxLines    = 512 // different ones remembered
)

// logBridge writes memberlist's log lines to zerolog, with their level, each
// repeated one seldom and all together at a bounded rate.
type logBridge struct {
	log zerolog.Logger
	now func() time.Time

	mu      sync.Mutex
	silent  bool // shutting down: what fails now is of no interest
	seen    map[string]*line
	began   time.Time // of the window
	written int       // in the window
	dropped int       // since the last line that was written
}

type line struct {
	at       time.Time // last written
	repeated int       // since then
}

func newLogBridge(l zerolog.Logger) *logBridge {
	return &logBridge{log: l, now: time.Now, seen: map[string]*line{}}
}

func (b *logBridge) logger() *log.Logger { return log.New(b, "", 0) }

// quiet lets everything through at debug level only.
func (b *logBridge) quiet() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent = true
}

// say logs a line of our own that the network can cause, under the same bounds.
func (b *logBridge) say(level, text string) {
	_, _ = b.Write([]byte("[" + level + "] " + text))
}

// Write takes one line, as log.Logger hands it over. It never fails.
func (b *logBridge) Write(p []byte) (int, error) {
	level, text := parseLine(string(p))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.silent {
		level = zerolog.DebugLevel
	}
	if level < b.log.GetLevel() || level < zerolog.GlobalLevel() {
		return len(p), nil // counts for nothing
	}
	if repeated, ok := b.admit(level, text); ok {
		e := b.log.WithLevel(level)
		if repeated > 0 {
			e.Int("repeated", repeated)
		}
		if b.dropped > 0 {
			e.Int("dropped", b.dropped)
			b.dropped = 0
		}
		e.Msg(text)
	}
	return len(p), nil
}

// admit decides whether a line is written, and how often it was held back
// since it last was.
func (b *logBridge) admit(level zerolog.Level, text string) (repeated int, ok bool) {
	now := b.now()
	key := level.String() + " " + sourcePort.ReplaceAllString(text, "$1")
	l := b.seen[key]
	if l != nil && now.Sub(l.at) < repeatAfter {
		l.repeated++
		return 0, false
	}
	if now.Sub(b.began) >= lineWindow {
		b.began, b.written = now, 0
	}
	if b.written >= lineLimit {
		b.dropped++
		return 0, false
	}
	b.written++
	if l == nil {
		if len(b.seen) >= maxLines {
			clear(b.seen)
		}
		l = &line{}
		b.seen[key] = l
	}
	repeated, l.repeated, l.at = l.repeated, 0, now
	return repeated, true
}

// sourcePort finds the port of a peer's connection, which differs each time.
var sourcePort = regexp.MustCompile(`((?:from=|->)\S*):\d+`)

// parseLine splits "[LEVEL] memberlist: text". Lines without a level are info,
// those that begin with "Err:" errors.
func parseLine(s string) (zerolog.Level, string) {
	s = strings.TrimSpace(s)
	level := zerolog.InfoLevel
	if rest, ok := strings.CutPrefix(s, "["); ok {
		if word, text, ok := strings.Cut(rest, "]"); ok {
			switch word {
			case "TRACE", "DEBUG":
				level, s = zerolog.DebugLevel, text
			case "INFO":
				level, s = zerolog.InfoLevel, text
			case "WARN", "WARNING":
				level, s = zerolog.WarnLevel, text
			case "ERR", "ERROR":
				level, s = zerolog.ErrorLevel, text
			}
		}
	} else if strings.HasPrefix(s, "Err:") {
		level = zerolog.ErrorLevel
	}
	s = strings.TrimPrefix(strings.TrimSpace(s), "memberlist: ")
	if len(s) > lineLength {
		s = strings.ToValidUTF8(s[:lineLength], "") + "..."
	}
	return level, s
}
