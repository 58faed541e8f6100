package server

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestAFullServerRefusesWhatNeedsMemoryOnly(t *testing.T) {
	t.Parallel()
	s := newSetting(t, Options{Args: []string{"--maxmemory", "100mb"}})
	s.set("a")
	for range 2 { // twice is once
		s.ok(s.Full(t.Context(), true))
	}
	s.refused(s.rdb.Set(t.Context(), "b", "v", 0).Err(), "OOM")
	s.ok(s.rdb.Del(t.Context(), "a").Err())
	s.refused(s.rdb.Set(t.Context(), "b", "v", 0).Err(), "OOM")
	for range 2 {
		s.ok(s.Full(t.Context(), false))
	}
	s.set("c")
	s.has("c")
	if got := s.rdb.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; got != "104857600" {
		t.Errorf("maxmemory is %s, want it as it was", got)
	}
	s.ok(s.Full(t.Context(), true))
	s.ok(s.Restart(t.Context()))
	s.set("a")
	s.ok(s.Full(t.Context(), true)) // counts again after a restart
	s.refused(s.rdb.Set(t.Context(), "b", "v", 0).Err(), "OOM")
}

// fill writes until the disk is full.
func (s *setting) fill() (err error) {
	for range 1000 {
		if err = s.rdb.Set(s.Context(), "ballast", strings.Repeat("x", 1000), 0).Err(); err != nil {
			return err
		}
	}
	return nil
}

func TestWithAFullDiskRedisRefusesWritesUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	s := newSetting(t, Options{Fsync: "everysec"})
	s.set("a")
	if runtime.GOOS != "linux" {
		s.refused(s.Disk(t.Context(), true), "only Linux")
		return
	}
	s.ok(s.Disk(t.Context(), true))
	s.refused(s.fill(), "MISCONF")
	s.refused(s.rdb.Set(t.Context(), "b", "v", 0).Err(), "MISCONF")
	s.ok(s.Disk(t.Context(), false))
	s.set("c")
	s.written()
	s.Kill()
	s.ok(s.Restart(t.Context()))
	s.has("a c")
}

func TestWithFsyncAlwaysAFullDiskEndsRedisAndSpaceStartsIt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("only Linux limits the files of a running process")
		return
	}
	s := newSetting(t, Options{Fsync: "always"})
	s.set("a")
	s.ok(s.Disk(t.Context(), true))
	if err := s.fill(); err == nil || strings.Contains(err.Error(), "MISCONF") {
		t.Errorf("error %v, want a broken connection", err)
	}
	<-s.process().Ended()
	s.refused(s.Disk(t.Context(), true), "does not run")
	s.ok(s.Disk(t.Context(), false))
	s.has("a")
	s.set("b")
}

func TestABusyServerSaysSo(t *testing.T) {
	t.Parallel()
	s := newSetting(t, Options{})
	s.set("a")
	done := make(chan error, 1)
	go func() { done <- s.Busy(t.Context(), time.Second) }()
	eventually(t, "the word BUSY", func() bool {
		err := s.rdb.Get(t.Context(), "a").Err()
		return err != nil && strings.Contains(err.Error(), "BUSY")
	})
	s.ok(<-done)
	s.set("a")
	if got := s.rdb.ConfigGet(t.Context(), "lua-time-limit").Val()["lua-time-limit"]; got != "5000" {
		t.Errorf("lua-time-limit is %s, want it as it was", got)
	}
}

func TestFlushes(t *testing.T) {
	t.Parallel()
	s := newSetting(t, Options{})
	script := redis.NewScript("return 1")
	s.ok(script.Load(t.Context(), s.rdb).Err())
	s.set("a")
	s.ok(s.FlushScripts(t.Context()))
	if known := script.Exists(t.Context(), s.rdb).Val(); known[0] {
		t.Error("the script is still known")
	}
	s.has("a")
	s.ok(s.FlushAll(t.Context()))
	s.has("")
}

func TestARollbackForgetsWhatCameAfterTheSnapshot(t *testing.T) {
	t.Parallel()
	s := newSetting(t, Options{Fsync: "always"})
	s.refused(s.Rollback(t.Context()), "no snapshot")
	s.set("a")
	s.ok(s.Snapshot(t.Context()))
	s.set("b")
	s.ok(s.rdb.Del(t.Context(), "a").Err())
	s.ok(s.Rollback(t.Context()))
	s.has("a")
	s.set("c")
	s.ok(s.Snapshot(t.Context())) // in place of the first
	s.set("b")
	s.ok(s.Rollback(t.Context()))
	s.has("a c")
	s.ok(s.Rollback(t.Context())) // once more to the same one
	s.has("a c")
}

// A snapshot is taken while others write: it is some moment of them, whole
// transactions only.
func TestASnapshotUnderLoadIsOneMomentOfIt(t *testing.T) {
	t.Parallel()
	s := newSetting(t, Options{})
	count := redis.NewScript("redis.call('INCR', 'n') redis.call('INCR', 'm') return 1")
	stop, done := make(chan struct{}), make(chan int64, 1)
	go func() {
		var n int64
		for {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			if count.Run(t.Context(), s.rdb, nil).Err() == nil {
				n++
			}
		}
	}()
	eventually(t, "some load", func() bool { n, _ := s.rdb.Get(t.Context(), "n").Int64(); return n > 100 })
	before, err := s.rdb.Get(t.Context(), "n").Int64()
	s.ok(err)
	s.ok(s.Snapshot(t.Context()))
	close(stop)
	written := <-done
	s.ok(s.Rollback(t.Context()))
	n, err := s.rdb.Get(t.Context(), "n").Int64()
	s.ok(err)
	m, err := s.rdb.Get(t.Context(), "m").Int64()
	s.ok(err)
	if n != m || n < before || n > written {
		t.Errorf("n is %d, m is %d, want the same from %d to %d", n, m, before, written)
	}
}

func TestASlowStartAnswersLoadingAndThenServesAll(t *testing.T) {
	t.Parallel()
	s := newSetting(t, Options{Fsync: "always"})
	s.set("a")
	loading, seen := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(seen)
		for told := false; ; {
			select {
			case <-loading:
				return
			default:
				if err := s.rdb.Get(context.Background(), "a").Err(); !told && redis.IsLoadingError(err) {
					told = true
					seen <- struct{}{}
				}
			}
		}
	}()
	done := make(chan error, 1)
	go func() { done <- s.Reload(context.Background(), 2*time.Second) }()
	if _, told := <-seen; !told {
		t.Error("it never answered LOADING")
	}
	s.ok(<-done)
	close(loading)
	<-seen
	s.has("a")
	if n := s.rdb.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("%d keys are left, want the one that was there", n)
	}
	s.written()
}
