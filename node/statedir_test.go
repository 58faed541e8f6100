package node

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStateDirectoryProvesOnlyItsOwnPast(t *testing.T) {
	t.Parallel()
	if bootID() == "" {
		t.Fatal("this machine has no boot id: no record can prove anything")
	}
	edit := func(change func(*lastRun)) func(t *testing.T, dir string) string {
		return func(t *testing.T, dir string) string {
			b, err := os.ReadFile(filepath.Join(dir, "lock"))
			var r lastRun
			if err = errors.Join(err, json.Unmarshal(b, &r)); err != nil {
				t.Fatal(err)
			}
			change(&r)
			b, _ = json.Marshal(r)
			if err := os.WriteFile(filepath.Join(dir, "lock"), b, 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	tests := map[string]struct {
		meanwhile func(t *testing.T, dir string) string // returns the directory of the next start
		want      string
	}{
		"the same directory proves that the last session is gone": {func(_ *testing.T, dir string) string { return dir }, "n1-old"},
		"a copied directory proves nothing": {func(t *testing.T, dir string) string {
			to := t.TempDir()
			b, err := os.ReadFile(filepath.Join(dir, "lock"))
			if err == nil {
				err = os.WriteFile(filepath.Join(to, "lock"), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			return to
		}, ""},
		"a record of another boot proves nothing":   {edit(func(r *lastRun) { r.Boot = "another" }), ""},
		"a record without a boot proves nothing":    {edit(func(r *lastRun) { r.Boot = "" }), ""},
		"a record of another device proves nothing": {edit(func(r *lastRun) { r.Device++ }), ""},
		"a record of another file proves nothing":   {edit(func(r *lastRun) { r.Inode++ }), ""},
		"half a record proves nothing": {func(t *testing.T, dir string) string {
			if err := os.Truncate(filepath.Join(dir, "lock"), 20); err != nil {
				t.Fatal(err)
			}
			return dir
		}, ""},
		"a new directory proves nothing": {func(t *testing.T, _ string) string { return filepath.Join(t.TempDir(), "a", "b") }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, err := openStateDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(first.record("n1-very-long-name-of-before"), first.record("n1-old")); err != nil {
				t.Fatal(err)
			}
			first.close()
			then := tt.meanwhile(t, dir)
			var next *stateDir
			eventually(t, patience, "the lock is free (a process that another test forks has it for a moment)", func() bool {
				next, err = openStateDir(then)
				return err == nil
			})
			defer next.close()
			if got := next.predecessor(); got != tt.want {
				t.Errorf("predecessor %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRecordIsWrittenInPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openStateDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	before, err := os.Stat(filepath.Join(dir, "lock"))
	if err == nil {
		err = s.record("n1-new")
	}
	after, err2 := os.Stat(filepath.Join(dir, "lock"))
	if err != nil || err2 != nil || !os.SameFile(before, after) {
		t.Errorf("%v, %v: the record was not written into the lock file itself", err, err2)
	}
}

func TestSecondProcessWithTheSameDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	dir := t.TempDir()
	h.spawn(order{Name: "n1", StateDir: dir})
	eventually(t, patience, "n1 runs", func() bool { return len(h.nodes()) == 1 })
	c := h.config("n2")
	c.StateDir = dir
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(context.Background()); !errors.Is(err, ErrConfig) {
		t.Errorf("Run returned %v, want ErrConfig", err)
	}
	if len(h.nodes()) != 1 {
		t.Errorf("nodes %v, want the first alone", h.nodes())
	}
}

func TestRestartInTheSameDirectoryRecoversAtOnce(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	dir := t.TempDir()
	h.spawn(order{Name: "other", NoHandler: true, Queues: []Queue{{"elsewhere", 1}}})
	n1 := h.spawn(order{Name: "n1", StateDir: dir, Gossip: "off"})
	id := h.do(work{Sleep: time.Minute})
	eventually(t, patience, "it runs", func() bool { return len(h.ledger.starts(id)) == 1 })
	eventually(t, patience, "there is a sweeper", func() bool { return h.sweeper() != "" })
	n1.kill()
	killed := time.Now()
	h.spawn(order{Name: "n1", StateDir: dir, Gossip: "off"})
	eventually(t, patience, "it runs again", func() bool { return len(h.ledger.starts(id)) == 2 })
	t.Logf("the job ran again %v after the kill, start of the process included", h.ledger.starts(id)[1].at.Sub(killed).Round(time.Millisecond))
	if r := h.job(id); r.Stalls != 1 || r.Attempts != 1 {
		t.Errorf("%+v, want one attempt spent by a stall", r)
	}
}
