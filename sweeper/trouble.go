package sweeper

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// trouble tells of errors without flooding the log: one line a second for each
// step that fails. Steps are few and named in the code, so its maps are small.
type trouble struct {
	log    zerolog.Logger
	errors atomic.Int64

	mu    sync.Mutex // guards all below
	steps map[string]*fault
}

// fault is one step that fails, or has.
type fault struct {
	told   time.Time // of the last line
	hidden int       // errors since then
	now    string    // how it fails, "" if it does not
}

func newTrouble(log zerolog.Logger) *trouble {
	return &trouble{log: log, steps: map[string]*fault{}}
}

// note takes an error of a step that will be tried again.
func (t *trouble) note(step string, err error) {
	t.errors.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.steps[step]
	if f == nil {
		f = &fault{}
		t.steps[step] = f
	}
	f.now = err.Error()
	now := time.Now()
	if !f.told.IsZero() && now.Sub(f.told) < time.Second {
		f.hidden++
		return
	}
	line := t.log.Warn().Err(err).Str("step", step)
	if f.hidden > 0 {
		line = line.Int("more", f.hidden)
	}
	line.Msg("sweep failed in part, going on")
	f.told, f.hidden = now, 0
}

// over says that a step has succeeded.
func (t *trouble) over(step string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.steps[step]; f != nil {
		f.now = ""
	}
}

// failing says what fails now.
func (t *trouble) failing() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var now []string
	for step, f := range t.steps {
		if f.now != "" {
			now = append(now, step+": "+f.now)
		}
	}
	slices.Sort(now)
	return strings.Join(now, "; ")
}
