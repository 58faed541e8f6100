package cluster

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls back, also before Create has returned and
// after Shutdown. It is called under memberlist's locks: a call from here into
// memberlist would deadlock, and what it hands out is rewritten later. So each
// method copies, queues and returns.
type delegate struct{ c *Cluster }

var (
	_ memberlist.EventDelegate = delegate{}
	_ memberlist.Delegate      = delegate{}
)

func (d delegate) NotifyJoin(n *memberlist.Node)   { d.record(n, Alive) }
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.record(n, Alive) }

// NotifyLeave comes for the dead and for those who left alike; who left has
// said so before, and the roster keeps that.
func (d delegate) NotifyLeave(n *memberlist.Node) { d.record(n, Dead) }

func (d delegate) record(n *memberlist.Node, s State) {
	m := Member{Name: n.Name, Addr: net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port))), State: s, Since: time.Now(), Self: n.Name == d.c.name}
	var err error
	if m.Node, m.Meta, err = decodeMeta(n.Meta); err != nil {
		d.c.bridge.say("WARN", "the metadata of "+n.Name+" cannot be read")
	}
	if m.Node == "" {
		m.Node = nodeOf(n.Name)
	}
	if m.Self && s == Dead {
		m.State = Left // we say so ourselves, or it would be refuted
	}
	d.c.roster.put(m)
	if s == Alive && !m.Self && m.Meta.Session != "" {
		d.c.Meet(m.Meta.Session, m.Addr)
	}
}

// nodeOf cuts the boot suffix from a gossip name.
func nodeOf(name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		return name[:i]
	}
	return name
}

func (d delegate) NodeMeta(limit int) []byte {
	return encodeMeta(d.c.cfg.Name, *d.c.meta.Load(), limit)
}

// NotifyMsg gets a buffer that memberlist uses again.
func (d delegate) NotifyMsg(b []byte) {
	kind, from, msg, err := decodeMessage(b)
	switch {
	case err != nil:
		d.c.bridge.say("WARN", "a direct message is not ours or broken, ignored")
	case kind == kindLeave:
		d.c.roster.leave(from, time.Now())
	default:
		d.c.inbox.add(from, msg)
	}
}

func (d delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (d delegate) LocalState(bool) []byte          { return nil }
func (d delegate) MergeRemoteState([]byte, bool)   {}
