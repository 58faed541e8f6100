package proxy

import (
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Names knows scripts by the SHA-1 of their text. Proxies share one, and learn
// the scripts whose text passes. It is safe for concurrent use.
type Names struct {
	mu sync.RWMutex
	of map[string]string // by SHA-1 in lower case
}

// NewNames returns names that know these scripts, as queue.Scripts tells them:
// SHA-1 -> name.
func NewNames(known map[string]string) *Names {
	n := &Names{of: map[string]string{}}
	maps.Copy(n.of, known)
	return n
}

// nameLine is how a script of Kelpie says its name. What is put before all may
// have comments of that form too; the script's own is followed by its keys.
var nameLine = regexp.MustCompile(`(?m)^-- ([a-z]+): .*(\n-- KEYS )?`)

// learn returns the name of a script by its text, "" if it says none.
func (n *Names) learn(text string) string {
	all := nameLine.FindAllStringSubmatch(text, -1)
	if all == nil {
		return ""
	}
	m := all[max(0, slices.IndexFunc(all, func(m []string) bool { return m[2] != "" }))]
	sum := sha1.Sum([]byte(text))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[hex.EncodeToString(sum[:])] = m[1]
	return m[1]
}

// name returns the name of a script by its SHA-1, "" if it is unknown.
func (n *Names) name(sha string) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.of[strings.ToLower(sha)]
}
