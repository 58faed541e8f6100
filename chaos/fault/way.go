package fault

import (
	"context"
	"errors"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault/proxy"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// wayKinds harm the way between a node, or the producers, and Redis.
var wayKinds = []Kind{
	wayKind("cut-redis", "the way to Redis resets and refuses connections", nil),
	wayKind("half-open", "the way to Redis loses everything, but connections stay until For is over", ways(lost, lost)),
	wayKind("deaf", "commands reach Redis, replies are lost", ways(proxy.Way{}, lost)),
	wayKind("dumb", "commands are lost, what Redis says arrives", ways(lost, proxy.Way{})),
	wayKind("frozen", "nothing arrives until For is over, then all of it does", ways(held, held)),
	wayKind("slow", "commands and replies take Delay longer each (default 100 ms)", func(b *blow) (up, down proxy.Way) {
		slow := proxy.Way{Delay: b.delay(100 * time.Millisecond)}
		return slow, slow
	}),
	{
		Name: "cut", Says: "a node reaches neither Redis nor other nodes",
		Aims: nodeAims, Needs: []string{OwnWays, OwnGossip}, holds: []thing{way, gossip},
		strike: func(ctx context.Context, b *blow) error {
			b.cutWays(ctx)
			if err := b.harm(herdCut); err != nil {
				return err
			}
			b.last(ctx)
			return nil
		},
	},
	{
		Name: "unplug", Says: "the machine of a node is cut from everything, and hears nothing of it",
		Aims: nodeAims, Needs: []string{Netns}, holds: []thing{way}, strike: unplug,
	},
}

var (
	lost = proxy.Way{Blocked: true, Lost: true}
	held = proxy.Way{Blocked: true}
)

// wayAims are the aims of what is done to ways, nodeAims those without producers.
var (
	wayAims  = []string{Holder, Sweeper, Random, Others, All, Producer}
	nodeAims = wayAims[:5]
)

// wayKind is a kind that sets both directions of a way, or cuts it where set is
// nil.
func wayKind(name, says string, set func(b *blow) (up, down proxy.Way)) Kind {
	strike := func(ctx context.Context, b *blow) error {
		if set == nil {
			b.cutWays(ctx)
		} else {
			b.setWays(ctx, set)
		}
		b.last(ctx)
		return nil
	}
	return Kind{Name: name, Says: says, Aims: wayAims, Needs: []string{OwnWays}, holds: []thing{way}, strike: strike}
}

func ways(up, down proxy.Way) func(*blow) (_, _ proxy.Way) {
	return func(*blow) (_, _ proxy.Way) { return up, down }
}

func (b *blow) cutWays(ctx context.Context) {
	for _, t := range b.targets {
		b.owe(func(context.Context) error { return t.way.Mend() })
		b.hit(ctx, t, history.Strike{}, t.way.Cut)
	}
}

func (b *blow) setWays(ctx context.Context, set func(b *blow) (up, down proxy.Way)) {
	for _, t := range b.targets {
		up, down := set(b)
		b.owe(func(context.Context) error {
			t.way.SetUp(proxy.Way{})
			t.way.SetDown(proxy.Way{})
			return nil
		})
		b.hit(ctx, t, history.Strike{}, func() {
			t.way.SetUp(up)
			t.way.SetDown(down)
		})
	}
}

func unplug(ctx context.Context, b *blow) error {
	var all error
	for _, t := range b.targets {
		cable := b.w.Cables[t.name]
		b.owe(func(context.Context) error { return cable.Plug() })
		b.hit(ctx, t, history.Strike{}, func() { all = errors.Join(all, cable.Unplug()) })
	}
	if all != nil {
		return all
	}
	b.last(ctx)
	return nil
}
