package fault

import "sync"

// thing is a sort of what a fault has in its hands.
type thing string

const (
	process thing = "process" // of a node or a producer
	way     thing = "way"     // of a node, or of the producers, to Redis
	gossip  thing = "gossip"  // as a whole: each link has two ends
	redis   thing = "redis"
)

// of names the thing that a node or a producer has.
func (t thing) of(name string) string {
	if t == gossip || t == redis {
		return string(t)
	}
	return string(t) + " " + name
}

// claims says which fault has which thing in its hands, so that no two heal the
// same one against each other. The zero value has none.
type claims struct {
	mu sync.Mutex
	by map[string]*blow
}

// take claims all the things or none of them.
func (c *claims) take(b *blow, things ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.unclaimed(b, things) {
		return false
	}
	if c.by == nil {
		c.by = map[string]*blow{}
	}
	for _, name := range things {
		c.by[name] = b
	}
	return true
}

// drop gives back what b has.
func (c *claims) drop(b *blow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, owner := range c.by {
		if owner == b {
			delete(c.by, name)
		}
	}
}

// free tells that nobody but b has any of the things; b may be nil.
func (c *claims) free(b *blow, things ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unclaimed(b, things)
}

// unclaimed is free, under the lock.
func (c *claims) unclaimed(b *blow, things []string) bool {
	for _, name := range things {
		if owner := c.by[name]; owner != nil && owner != b {
			return false
		}
	}
	return true
}
