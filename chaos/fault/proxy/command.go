package proxy

import (
	"slices"
	"strings"
)

// command is one command on its way, and what a shot does to it.
type command struct {
	raw    []byte
	name   string // of the script, or in lower case of the command
	script bool   // name is that of a script
	mute   bool   // nothing answers it
	opaque bool   // what comes after it cannot be paired
	opens  bool   // a new connection needs it again: AUTH, SELECT, HELLO

	aimed *Aimed // nil: nobody shot at it
}

// parse looks at a command as closely as is needed to know its name.
func (n *Names) parse(raw []byte) *command {
	c := &command{raw: raw}
	w := words(raw, 2)
	if len(w) == 0 {
		c.mute = true
		return c
	}
	c.name = strings.ToLower(w[0])
	switch c.name {
	case "evalsha", "evalsha_ro":
		if len(w) > 1 {
			c.called(n.name(w[1]))
		}
	case "eval", "eval_ro":
		if len(w) > 1 {
			c.called(n.learn(w[1]))
		}
	case "script":
		if w = words(raw, 3); len(w) > 2 && strings.EqualFold(w[1], "load") {
			n.learn(w[2])
		}
	case "auth", "select", "hello":
		c.opens = true
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "monitor", "sync", "psync":
		c.opaque = true
	case "client":
		c.opaque = len(w) > 1 && strings.EqualFold(w[1], "reply")
	}
	return c
}

func (c *command) called(script string) {
	if script != "" {
		c.name, c.script = script, true
	}
}

// pairs are the commands that Redis has not answered yet, in the order in which
// they were sent. The zero value is ready; the link's lock guards it.
type pairs struct{ list []*command }

func (p *pairs) push(c *command) { p.list = append(p.list, c) }

func (p *pairs) pop() *command {
	if len(p.list) == 0 {
		return nil
	}
	c := p.list[0]
	p.list[0] = nil
	if p.list = p.list[1:]; len(p.list) == 0 && cap(p.list) < 64 {
		p.list = nil
	}
	return c
}

// take empties the list.
func (p *pairs) take() []*command {
	all := slices.Clip(p.list)
	p.list = nil
	return all
}
