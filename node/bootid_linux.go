package node

import (
	"os"
	"strings"
)

// bootID changes with every boot of the machine; "" if it cannot be told.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
