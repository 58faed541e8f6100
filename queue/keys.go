package queue

// spaceKeys spells every key of a job space; nothing else does. All keys of a
// queue share a hash tag, and so do those of the whole space, so that a script
// can see either and Redis can place it.
type spaceKeys struct{ prefix string }

// of returns the key called what of a queue: jobs, tries, waiting, delayed,
// active, holders, senders, dead, completed, cancelled, cancels, meta, minutes,
// wake, poke, log; unique and fired are kept for what is to come.
func (k spaceKeys) of(queue, what string) string { return k.prefix + ":{" + queue + "}:" + what }

// whole returns a key of the whole space: sessions, condemned, nodes, sweeper,
// epoch, queues, format, gossip, meta, log; schedules is kept for what is to come.
func (k spaceKeys) whole(what string) string { return k.of(reserved, what) }

// list returns keys in the order that a script names them in its header.
func (k spaceKeys) list(queue string, names []string) []string {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = k.of(queue, name)
	}
	return keys
}

// SweeperKey is the key of the sweeper lock, for package lock.
func (c *Client) SweeperKey() string { return c.keys.whole("sweeper") }

// Prefix returns the prefix of every key.
func (c *Client) Prefix() string { return c.keys.prefix }

// Key returns the key called what of a queue, for who looks at Redis itself,
// such as a judge that must not see it through this package's eyes.
func (c *Client) Key(queue, what string) string { return c.keys.of(queue, what) }
