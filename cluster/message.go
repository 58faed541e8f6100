package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/memberlist"
)

const (
	maxMessage = 1024 // bytes; with names, key and label it stays one datagram
	maxInbox   = 1024 // messages that wait for OnMessage; more are dropped

	kindLeave  byte = 'L' // the sender leaves now
	kindDirect byte = 'D' // for OnMessage
)

var errMessage = errors.New("message is not ours or broken")

// Send sends a message of at most 1024 bytes to the member with that gossip
// name, as one datagram: it does not wait, and the message may be lost, come
// twice, or overtake another. Before Run has bound its sockets and after it has
// ended it returns an error.
func (c *Cluster) Send(member string, msg []byte) error {
	if len(msg) > maxMessage {
		return fmt.Errorf("message to %s has %d bytes, at most %d are sent", member, len(msg), maxMessage)
	}
	m, ok := c.roster.get(member)
	if !ok || m.State == Left {
		return fmt.Errorf("%s is no member", member)
	}
	return c.send(m, encodeMessage(kindDirect, c.name, msg))
}

func (c *Cluster) send(m Member, b []byte) error {
	c.running.RLock()
	defer c.running.RUnlock()
	if c.list == nil {
		return errors.New("gossip is not running")
	}
	return c.list.SendToAddress(memberlist.Address{Addr: m.Addr, Name: m.Name}, b)
}

// sayGoodbye tells everybody that this node leaves, so that they can tell it
// from a death.
func (c *Cluster) sayGoodbye() {
	b := encodeMessage(kindLeave, c.name, nil)
	for _, m := range c.roster.list() {
		if m.State == Alive && !m.Self {
			_ = c.send(m, b) // a lost one shows us as dead, which decides nothing
		}
	}
}

// encodeMessage writes kind, length of the sender's name, name, message.
func encodeMessage(kind byte, from string, msg []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(from)))
	return append(append(b, from...), msg...)
}

// decodeMessage copies: b is memberlist's.
func decodeMessage(b []byte) (kind byte, from string, msg []byte, err error) {
	if len(b) < 3 || b[0] != kindLeave && b[0] != kindDirect {
		return 0, "", nil, errMessage
	}
	n := int(binary.BigEndian.Uint16(b[1:]))
	if len(b) < 3+n || len(b) > 3+n+maxMessage || !printable(string(b[3:3+n])) {
		return 0, "", nil, errMessage
	}
	return b[0], string(b[3 : 3+n]), append([]byte(nil), b[3+n:]...), nil
}

// inbox keeps messages from the callback until deliver takes them.
type inbox struct {
	mu      sync.Mutex
	waiting []letter
	more    chan struct{} // one slot
}

type letter struct {
	from string
	msg  []byte
}

func (i *inbox) add(from string, msg []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting) >= maxInbox {
		return
	}
	i.waiting = append(i.waiting, letter{from, msg})
	select {
	case i.more <- struct{}{}:
	default:
	}
}

func (i *inbox) take() []letter {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.waiting
	i.waiting = nil
	return all
}

// deliver hands messages to OnMessage until ctx ends.
func (c *Cluster) deliver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.inbox.more:
		}
		for _, l := range c.inbox.take() {
			if c.cfg.OnMessage != nil && ctx.Err() == nil {
				c.cfg.OnMessage(l.from, l.msg)
			}
		}
	}
}
