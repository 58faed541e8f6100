package node

import (
	"sync"
	"time"
)

// complaints lets each cause be logged at most once a second.
type complaints struct {
	mu   sync.Mutex
	last map[string]time.Time
}

const maxCauses = 1000

func newComplaints() *complaints { return &complaints{last: map[string]time.Time{}} }

// Do calls say unless the same cause was said within the last second.
func (c *complaints) Do(cause string, say func()) {
	c.mu.Lock()
	now := time.Now()
	if now.Sub(c.last[cause]) < time.Second {
		c.mu.Unlock()
		return
	}
	if len(c.last) >= maxCauses {
		clear(c.last)
	}
	c.last[cause] = now
	c.mu.Unlock()
	say()
}
