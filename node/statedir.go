package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// stateDir keeps which session ran last on this machine. Its lock file proves
// that the process of that session is gone: who holds the lock may condemn it
// at once. A copied directory proves nothing, so the record names the boot of
// the machine and the very file in which it stands.
type stateDir struct {
	file *os.File // locked; nil without a state directory
	prev string   // session of the last process here, if that is proven
}

// lastRun is the record, written in place into the lock file.
type lastRun struct {
	Session string `json:"session"`
	Boot    string `json:"boot"`
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
}

// openStateDir takes the lock; a second process with the same directory fails.
func openStateDir(dir string) (*stateDir, error) {
	if dir == "" {
		return &stateDir{}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: state directory: %w", ErrConfig, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: state directory: %w", ErrConfig, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: state directory %s: cannot be locked: %w", ErrConfig, dir, err)
		}
		return nil, fmt.Errorf("%w: state directory %s: another process uses it", ErrConfig, dir)
	}
	s := &stateDir{file: f}
	var last lastRun
	if err := json.NewDecoder(f).Decode(&last); err == nil {
		if now, err := s.here(last.Session); err == nil && now == last && last.Boot != "" {
			s.prev = last.Session
		}
	}
	return s, nil
}

// here is the record that this file would get now.
func (s *stateDir) here(session string) (lastRun, error) {
	info, err := s.file.Stat()
	if err != nil {
		return lastRun{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return lastRun{}, fmt.Errorf("no inode for %s", s.file.Name())
	}
	return lastRun{session, bootID(), uint64(st.Dev), uint64(st.Ino)}, nil
}

// record writes the session down before it registers.
func (s *stateDir) record(session string) error {
	if s.file == nil {
		return nil
	}
	r, err := s.here(session)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := s.file.Truncate(0); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if _, err := s.file.WriteAt(b, 0); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return s.file.Sync()
}

// predecessor returns the session whose process is proven gone, or "".
func (s *stateDir) predecessor() string { return s.prev }

func (s *stateDir) close() {
	if s.file != nil {
		_ = s.file.Close() // and with it the lock
	}
}
