package server

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/process"
)

func TestAServerKeepsWhatItAcknowledgedOverAKill(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"always", "everysec"} {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, Options{Fsync: fsync})
			url := s.URL()
			if got := s.rdb.ConfigGet(t.Context(), "appendfsync").Val()["appendfsync"]; got != fsync || s.Fsync() != fsync {
				t.Errorf("appendfsync is %q", got)
			}
			if !strings.Contains(s.Name(), "-server ") {
				t.Errorf("its name is %q", s.Name())
			}
			s.set("a")
			s.written()
			s.Kill()
			s.Kill() // it is dead already
			if _, err := net.Dial("tcp", s.Addr()); err == nil {
				t.Fatal("a dead server answers")
			}
			s.ok(s.Restart(t.Context()))
			s.has("a")
			s.ok(s.Restart(t.Context())) // of one that runs
			s.has("a")
			if s.URL() != url {
				t.Errorf("it moved from %s to %s", url, s.URL())
			}
		})
	}
}

func TestTheKennelEndsTheServerAndRemovesItsFiles(t *testing.T) {
	t.Parallel()
	program := program(t)
	k, err := process.Open(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Start(t.Context(), k, Options{Program: program})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.Dir()); err != nil {
		t.Error(err)
	}
	r.Pause() // one that is stopped ends too
	if err := errors.Join(r.Close(), k.Close()); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", r.Addr()); err == nil {
		t.Error("it still answers")
	}
	if _, err := os.Stat(r.Dir()); !os.IsNotExist(err) {
		t.Errorf("its files are still there: %v", err)
	}
}

func TestAPausedServerAnswersWhenItIsResumed(t *testing.T) {
	t.Parallel()
	s := newSetting(t, Options{})
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.rdb.Ping(ctx).Err(); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	s.set("a")
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), openKennel(t), Options{Program: program(t), Args: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("Start = %v, want the server's own words", err)
	}
}

func TestAServerWhosePortWasTakenDoesNotComeBack(t *testing.T) {
	t.Parallel()
	s := newSetting(t, Options{})
	s.Kill()
	l, err := net.Listen("tcp", s.Addr())
	s.ok(err)
	defer l.Close()
	if err := s.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "it ended by itself") {
		t.Errorf("Restart = %v", err)
	}
}
