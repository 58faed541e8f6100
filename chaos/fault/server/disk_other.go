//go:build !linux

package server

import "errors"

var errNoLimit = errors.New("the disk of Redis cannot be full here: only Linux limits the files of a running process")

func limitFiles(pid int, size int64) error { return errNoLimit }

func unlimitFiles(pid int) error { return errNoLimit }
