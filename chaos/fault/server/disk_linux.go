package server

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// limitFiles keeps a process from writing beyond so many bytes of any file.
func limitFiles(pid int, size int64) error {
	return fileLimit(pid, func(l *unix.Rlimit) { l.Cur = uint64(size) })
}

// unlimitFiles ends that.
func unlimitFiles(pid int) error { return fileLimit(pid, func(l *unix.Rlimit) { l.Cur = l.Max }) }

func fileLimit(pid int, change func(*unix.Rlimit)) error {
	var limit unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit)
	if err == nil {
		change(&limit)
		err = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil)
	}
	if err != nil {
		return fmt.Errorf("limit of the files of process %d: %w", pid, err)
	}
	return nil
}
