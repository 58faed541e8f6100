package sweeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/kelpiehq/kelpie/lock"
	"github.com/kelpiehq/kelpie/queue"
)

// Witness gives evidence besides silence that a session is dead. Testify is
// called for a silent session, for several at once, at most twice a second for
// each; false means "cannot say". It must return soon after ctx ends.
type Witness interface {
	Testify(ctx context.Context, session string) bool
}

// Options make a Sweeper. All of the first five are required.
type Options struct {
	Space   *queue.Client // all moves; not the client of the blocking calls
	Poke    *queue.Client // one blocking call at a time, so it needs a pool of its own
	Lock    *lock.Lock    // built for Session, its Alive being that of the Sweeper
	Session string        // ours; it is never condemned or reclaimed by this Sweeper
	Watch   *Watch        // fed by the heart of this node

	Witness Witness       // default: never says anything
	Silence time.Duration // unchanged for so long and a witness: dead; default 2 s
	Lease   time.Duration // unchanged for so long: dead; default 15 s
	Held    func() string // last known holder of the lock, "" if none; from any goroutine, must not block

	Log zerolog.Logger // default: silent
}

func (o Options) withDefaults() Options {
	o.Silence = cmp.Or(o.Silence, 2*time.Second)
	o.Lease = cmp.Or(o.Lease, 15*time.Second)
	if o.Witness == nil {
		o.Witness = mute{}
	}
	if o.Held == nil {
		o.Held = func() string { return "" }
	}
	return o
}

// check names every fault at once: field, value, rule.
func (o Options) check() error {
	var faults []error
	rule := func(holds bool, format string, args ...any) {
		if !holds {
			faults = append(faults, fmt.Errorf("sweeper: "+format, args...))
		}
	}
	rule(o.Space != nil, "space: must be given")
	rule(o.Poke != nil, "poke: must be given")
	rule(o.Lock != nil, "lock: must be given")
	rule(o.Watch != nil, "watch: must be given")
	rule(o.Session != "", "session %q: must not be empty", o.Session)
	rule(o.Silence > 0, "silence %v: must be above 0", o.Silence)
	rule(o.Lease >= o.Silence, "lease %v: must be at least silence %v", o.Lease, o.Silence)
	return errors.Join(faults...)
}

type mute struct{}

func (mute) Testify(context.Context, string) bool { return false }
