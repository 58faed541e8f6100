//go:build !linux

package node

import "golang.org/x/sys/unix"

// bootID changes with every boot of the machine; "" if it cannot be told.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
