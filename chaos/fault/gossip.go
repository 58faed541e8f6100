package fault

import (
	"context"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault/herd"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// gossipKinds harm the links between the targets and all other nodes, or all
// links where all nodes are targets.
var gossipKinds = []Kind{
	gossipKind("cut-gossip", "no gossip between the target and the others", herdCut),
	gossipKind("gossip-one-way", "gossip of the target reaches nobody, or none reaches it", oneWay),
	gossipKind("gossip-loss", "gossip loses a drawn part of its packets, from a tenth to six tenths", func(b *blow) (_, _ herd.Link) {
		return both(herd.Link{Drop: 0.1 + 0.5*b.rand.Float64()})
	}),
	gossipKind("gossip-duplicate", "a drawn part of the packets of gossip arrives twice, from a tenth to six tenths", func(b *blow) (_, _ herd.Link) {
		return both(herd.Link{Duplicate: 0.1 + 0.5*b.rand.Float64()})
	}),
	gossipKind("gossip-delay", "packets of gossip take up to Delay longer (default 200 ms) and overtake each other", func(b *blow) (_, _ herd.Link) {
		return both(herd.Link{Jitter: b.delay(200 * time.Millisecond)})
	}),
}

// draw says what happens on the ways from a target to another node and back.
type draw func(b *blow) (there, back herd.Link)

func gossipKind(name, says string, d draw) Kind {
	strike := func(ctx context.Context, b *blow) error {
		if err := b.harm(d); err != nil {
			return err
		}
		b.last(ctx)
		return nil
	}
	return Kind{
		Name: name, Says: says, Aims: []string{Random, Holder, Sweeper, Others, All},
		Needs: []string{OwnGossip}, holds: []thing{gossip}, strike: strike,
	}
}

func both(l herd.Link) (there, back herd.Link) { return l, l }

func herdCut(*blow) (there, back herd.Link) { return both(herd.Link{Drop: 1}) }

func oneWay(b *blow) (there, back herd.Link) {
	if b.rand.IntN(2) == 0 {
		return herd.Link{Drop: 1}, herd.Link{}
	}
	return herd.Link{}, herd.Link{Drop: 1}
}

// harm sets the links of the targets. What is drawn is the same for all of them.
func (b *blow) harm(d draw) error {
	there, back := d(b)
	for _, link := range b.links() {
		from, to := link[0], link[1]
		b.owe(func(context.Context) error { return b.w.between(from, to, herd.Link{}, herd.Link{}) })
		s := history.Strike{T: history.Now(), Phase: history.Hit, Target: from + "|" + to}
		if there != back {
			s.Note = from + " does not reach " + to
			if there.Drop == 0 {
				s.Note = to + " does not reach " + from
			}
		}
		if err := b.w.between(from, to, there, back); err != nil {
			return err
		}
		b.record(s)
	}
	return nil
}

func (w *World) between(from, to string, there, back herd.Link) error {
	if err := w.Links.Set(from, to, there); err != nil {
		return err
	}
	return w.Links.Set(to, from, back)
}

// links returns the pairs that are harmed: first the target, then the other one.
func (b *blow) links() [][2]string {
	hit := map[string]bool{}
	for _, t := range b.targets {
		hit[t.name] = true
	}
	var pairs [][2]string
	for i, t := range b.targets {
		for _, other := range b.targets[i+1:] {
			if len(hit) == len(b.w.Nodes) {
				pairs = append(pairs, [2]string{t.name, other.name})
			}
		}
		for _, p := range b.w.Nodes {
			if !hit[p.Name()] {
				pairs = append(pairs, [2]string{t.name, p.Name()})
			}
		}
	}
	return pairs
}
