package fault

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault/proxy"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// deathbed is how soon after its last words a process is killed.
const deathbed = time.Millisecond

// lastWordsKind is what a network does to a node that dies: its last command is
// under way, and arrives when its jobs have long been taken from it.
var lastWordsKind = Kind{
	Name: "last-words", Says: "kill -9 in the moment when a command of Script has been sent, which arrives Delay later (default 5 s); a new process after For",
	Aims: []string{Holder, Sweeper, Random}, Needs: []string{OwnWays}, holds: []thing{process, way}, strike: lastWords,
}

func lastWords(ctx context.Context, b *blow) error {
	t := b.targets[0]
	shot := proxy.Shot{Script: b.fault.Script, If: wantsJobs, Nth: b.fault.Nth, Do: proxy.Late, Delay: b.delay(5 * time.Second)}
	var aimed *proxy.Aimed
	b.hit(ctx, t, history.Strike{Note: "in wait for its last words"}, func() { aimed = t.way.Aim(shot) })
	b.owe(b.disarm(aimed))
	waited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for aimed.Hits() == 0 {
		if pause(waited, deathbed) != nil {
			b.say("%s sent no such command, and lives", t.name)
			return nil
		}
	}
	b.signal(ctx, sigkill)
	said, cancel := context.WithTimeout(ctx, shot.Delay+patience)
	defer cancel()
	select {
	case <-aimed.Done():
	case <-said.Done():
	}
	b.last(ctx)
	return nil
}

// wantsJobs tells whether a command can give jobs to who sends it; only of an
// exchange one must look: its third argument is how many it wants.
func wantsJobs(args []string) bool {
	if len(args) < 3 {
		return false
	}
	keys, err := strconv.Atoi(args[2])
	if err != nil || !slices.ContainsFunc(args[3:min(len(args), 3+keys)], isHolders) || len(args) < 6+keys {
		return true
	}
	return args[5+keys] != "0"
}

func isHolders(key string) bool { return len(key) > 8 && key[len(key)-8:] == ":holders" }
