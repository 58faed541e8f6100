package queue

import (
	"fmt"
	"regexp"
)

// DefaultQueue is where a job goes that names no queue.
const DefaultQueue = "default"

// reserved would share its keys with those of the whole space.
const reserved = "cluster"

var nameRule = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// CheckName says in one sentence what is wrong with the name of a queue, a
// kind, a node or the prefix; what is the word for it in that sentence.
func CheckName(what, name string) error {
	switch {
	case !nameRule.MatchString(name), name == ".", name == "..":
		return fmt.Errorf("%s %q: must be 1 to 100 of A-Z a-z 0-9 . _ - and neither . nor ..%w", what, clip(name, 120), bad)
	case name == reserved:
		return fmt.Errorf("%s %q: this name is reserved%w", what, name, bad)
	}
	return nil
}

var idRule = regexp.MustCompile(`^[\x21-\x7e]{1,100}$`)

// CheckID says in one sentence what is wrong with a job id that a caller chose.
func CheckID(id string) error {
	if !idRule.MatchString(id) {
		return fmt.Errorf("id %q: must be 1 to 100 printable ASCII characters without space%w", clip(id, 120), bad)
	}
	return nil
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "..."
	}
	return s
}
