package cluster

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// Preset is how eagerly members watch each other.
type Preset string

// The presets. What is sooner seen is sooner wrong on a bad network; nothing
// rests on being right.
const (
	Fast Preset = "fast" // a dead peer is seen in about 2 s
	LAN  Preset = "lan"  // about 6 s
	WAN  Preset = "wan"  // half a minute and more
)

// tuning holds the times of a preset. All of them bound something.
type tuning struct {
	base    func() *memberlist.Config
	tcp     time.Duration // for joins and state exchanges; memberlist knows no shorter one for the connect
	connect time.Duration // of the witness
	rejoin  time.Duration // from round to round, with jitter
	forget  time.Duration // memberlist speaks to the dead that long

	probe, probeTimeout, gossip time.Duration // 0: as in base
	maxSuspicion                int           // times the shortest one
	maxAwareness                int           // a node that doubts itself probes at most that much slower
}

var presets = map[Preset]tuning{
	// Shortest suspicion 3 x 500 ms, longest 2 x that. The cap on awareness
	// lets a lone survivor of many deaths probe on.
	Fast: {base: memberlist.DefaultLANConfig, tcp: 2 * time.Second, connect: 500 * time.Millisecond, rejoin: 15 * time.Second,
		forget: 30 * time.Second, probe: 500 * time.Millisecond, probeTimeout: 200 * time.Millisecond,
		gossip: 50 * time.Millisecond, maxSuspicion: 2, maxAwareness: 4},
	LAN: {base: memberlist.DefaultLANConfig, tcp: 2 * time.Second, connect: time.Second, rejoin: 15 * time.Second,
		forget: 30 * time.Second, maxSuspicion: 3, maxAwareness: 8},
	WAN: {base: memberlist.DefaultWANConfig, tcp: 10 * time.Second, connect: 3 * time.Second, rejoin: 15 * time.Second,
		forget: 60 * time.Second, maxSuspicion: 6, maxAwareness: 8},
}

// apply writes the times into a new memberlist config.
func (t tuning) apply() *memberlist.Config {
	conf := t.base()
	conf.TCPTimeout = t.tcp
	conf.GossipToTheDeadTime = t.forget
	conf.SuspicionMaxTimeoutMult = t.maxSuspicion
	conf.AwarenessMaxMultiplier = t.maxAwareness
	conf.EnableCompression = false // packets are small, and each one would be tried
	if t.probe > 0 {
		conf.ProbeInterval, conf.ProbeTimeout = t.probe, t.probeTimeout
		conf.GossipInterval = t.gossip
		conf.SuspicionMult = 3
		conf.PushPullInterval = 5 * time.Second // what gossip lost is made up for then
	}
	return conf
}
