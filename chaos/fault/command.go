package fault

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault/proxy"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// commandKinds lie in wait for single commands on the way to Redis.
var commandKinds = []Kind{
	commandKind("drop-reply", "Redis executes the command and the reply is lost with its connection", proxy.DropReply),
	commandKind("late-copy", "Redis executes the command, and Delay later (default 1 s) a copy of it", proxy.LateCopy),
	commandKind("hold", "the command arrives Delay later (default 1 s), and so does what follows on its connection", proxy.Hold),
	commandKind("late", "the connection breaks, and the command arrives Delay later (default 1 s)", proxy.Late),
	commandKind("lose", "the connection breaks, and the command never arrives", proxy.Lose),
}

// commandKind is a kind that does something to Times commands (default 1) of
// Script, from the Nth on that comes after the hit. It waits for them until For
// is over, at least for some seconds, and does not last longer than they do.
func commandKind(name, says string, do proxy.Action) Kind {
	strike := func(ctx context.Context, b *blow) error {
		shot := proxy.Shot{Script: b.fault.Script, Nth: b.fault.Nth, Times: b.fault.Times, Do: do}
		if do == proxy.LateCopy || do == proxy.Hold || do == proxy.Late {
			shot.Delay = b.delay(time.Second)
		}
		var shots []*proxy.Aimed
		for _, t := range b.targets {
			b.hit(ctx, t, history.Strike{Note: "in wait for " + cmp.Or(shot.Script, "any script")}, func() {
				shots = append(shots, t.way.Aim(shot))
			})
			b.owe(b.disarm(shots[len(shots)-1]))
		}
		waited, cancel := context.WithTimeout(ctx, max(b.fault.For, patience)+shot.Delay)
		defer cancel()
		for _, s := range shots {
			select {
			case <-s.Done():
			case <-waited.Done():
			}
		}
		return nil
	}
	return Kind{Name: name, Says: says, Aims: wayAims, Needs: []string{OwnWays}, holds: []thing{way}, strike: strike}
}

// disarm cancels a shot and counts what it met.
func (b *blow) disarm(s *proxy.Aimed) func(context.Context) error {
	return func(context.Context) error {
		s.Cancel()
		b.count += s.Hits()
		if replies := s.Replies(); len(replies) > 0 {
			b.say("Redis answered %s", strings.Join(replies, ", "))
		}
		return nil
	}
}
