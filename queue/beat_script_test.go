package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func (s *space) beat(b Beat) Beats {
	s.t.Helper()
	r, err := s.c.Beat(s.ctx, b)
	s.ok(err)
	return r
}

func TestABeatSaysNowAndShowsTheSweeper(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		if b := s.beat(Beat{Session: "web-1", Info: []byte(`{"name":"web","workers":7}`)}); !b.Known || b.Holder != "" || b.All != nil || !b.At.Equal(noon) {
			t.Errorf("the first beat: %+v", b)
		}
		s.pass(500 * time.Millisecond)
		if b := s.beat(Beat{Session: "db-1"}); b.Known {
			t.Errorf("nobody described it: %+v", b)
		}
		epoch := s.epoch("web-1")
		b := s.beat(Beat{Session: "db-1", All: true})
		if b.Holder != "web-1" || b.Pulse != noon.UnixMilli() || len(b.All) != 2 || b.All["db-1"] != s.now.UnixMilli() {
			t.Errorf("with a sweeper: %+v", b)
		}
		nodes, err := s.c.Nodes(s.ctx)
		s.ok(err)
		if len(nodes) != 2 || nodes[0].Name != "db" || nodes[1].Name != "web" || nodes[1].Workers != 7 || !nodes[1].Sweeper || nodes[1].Epoch != epoch ||
			nodes[1].HeartbeatAge != 500*time.Millisecond || nodes[0].Sweeper {
			t.Errorf("nodes %+v", nodes)
		}
		if beat, ok, err := s.c.LastBeat(s.ctx, "web-1"); beat != noon.UnixMilli() || !ok || err != nil {
			t.Errorf("last beat %v %v %v", beat, ok, err)
		}
		if _, ok, err := s.c.LastBeat(s.ctx, "nobody"); ok || err != nil {
			t.Errorf("a beat of nobody: %v %v", ok, err)
		}
	})
}

func TestACondemnedSessionNeverComesBack(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.beat(Beat{Session: "web-1", Info: []byte(`{}`)})
		seen, _, _ := s.c.LastBeat(s.ctx, "web-1")
		s.pass(time.Millisecond)
		s.beat(Beat{Session: "web-1"})
		want := func(session string, beat int64, v Condemned) {
			t.Helper()
			if got, err := s.c.Condemn(s.ctx, session, beat); got != v || err != nil {
				t.Errorf("condemn %s with beat %d: %s, %v; want %s", session, beat, got, err, v)
			}
		}
		want("web-1", seen, Alive)
		want("nobody", seen, Absent)
		want("web-1", seen+1, Done)
		want("web-1", seen+1, Absent)
		if _, err := s.c.Beat(s.ctx, Beat{Session: "web-1", Info: []byte(`{}`)}); !errors.Is(err, ErrGone) {
			t.Errorf("its next beat: %v", err)
		}
		if got, _, err := s.c.Sessions(s.ctx); len(got) != 0 || err != nil || s.rdb.HLen(s.ctx, s.c.keys.whole("nodes")).Val() != 0 {
			t.Errorf("sessions %v, %v", got, err)
		}
		if _, got, err := s.c.Sessions(s.ctx); got["web-1"] != s.now.UnixMilli() || err != nil {
			t.Errorf("condemned %v, %v", got, err)
		}
	})
}

func TestTheLockGoesWithItsHolderAndWithNobodyElse(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		for _, name := range []string{"n-1", "n-11", "x-n-1"} {
			s.beat(Beat{Session: name})
		}
		s.epoch("n-11")
		beat := noon.UnixMilli()
		for _, name := range []string{"n-1", "x-n-1"} {
			if got, err := s.c.Condemn(s.ctx, name, beat); got != Done || err != nil {
				t.Fatal(got, err)
			}
			if s.rdb.Exists(s.ctx, s.c.SweeperKey()).Val() != 1 {
				t.Fatalf("the lock of n-11 went with %s", name)
			}
		}
		_, _ = s.c.Condemn(s.ctx, "n-11", beat)
		if s.rdb.Exists(s.ctx, s.c.SweeperKey()).Val() != 0 {
			t.Error("the lock is still there")
		}
	})
}

func TestByeCondemnsTheSessionItself(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.beat(Beat{Session: "web-1", Info: []byte(`{}`)})
		s.beat(Beat{Session: "web-1", Bye: true})
		if _, err := s.c.Beat(s.ctx, Beat{Session: "web-1"}); !errors.Is(err, ErrGone) {
			t.Errorf("after bye: %v", err)
		}
		if _, got, _ := s.c.Sessions(s.ctx); len(got) != 1 {
			t.Errorf("condemned %v: the sweeper looks there for what it might still hold", got)
		}
	})
}

func TestCondemnedOfADayAgoAreForgottenWithTheNextOne(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		condemn := map[string]func(session string){
			"bye": func(session string) { s.beat(Beat{Session: session, Bye: true}) },
			"condemn": func(session string) {
				now := s.beat(Beat{Session: session}).At.UnixMilli()
				if v, err := s.c.Condemn(s.ctx, session, now); v != Done || err != nil {
					t.Fatal(v, err)
				}
			},
		}
		for by, do := range condemn {
			s.ok(s.rdb.Del(s.ctx, s.c.keys.whole("condemned")).Err())
			do(by + "-old-1")
			s.pass(24*time.Hour - time.Millisecond)
			do(by + "-young-1")
			if _, got, _ := s.c.Sessions(s.ctx); len(got) != 2 {
				t.Errorf("%s: condemned %v a millisecond early", by, got)
			}
			s.pass(time.Millisecond)
			do(by + "-new-1")
			if _, got, _ := s.c.Sessions(s.ctx); len(got) != 2 || got[by+"-old-1"] != 0 {
				t.Errorf("%s: condemned %v after a day", by, got)
			}
		}
	})
}

func TestRaiseRemovesDescriptionsWithoutASession(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.ok(s.rdb.HSet(s.ctx, s.c.keys.whole("nodes"), "ghost", "{}").Err())
		s.epoch("n-1")
		if got := s.rdb.HKeys(s.ctx, s.c.keys.whole("nodes")).Val(); len(got) != 0 {
			t.Errorf("descriptions without a session: %v", got)
		}
	})
}

func TestAnotherFormatIsRefused(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.beat(Beat{Session: "n-1"})
		if got := s.rdb.Get(s.ctx, s.c.keys.whole("format")).Val(); got != formatVersion {
			t.Errorf("format %q", got)
		}
		s.ok(s.rdb.Set(s.ctx, s.c.keys.whole("format"), "2", 0).Err())
		if _, err := s.c.Beat(s.ctx, Beat{Session: "n-1"}); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `"2"`) {
			t.Errorf("format 2: %v", err)
		}
	})
}

func TestAForeignValueInTheLockIsNobodysLock(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.ok(s.rdb.Set(s.ctx, s.c.SweeperKey(), "short", 0).Err())
		if b := s.beat(Beat{Session: "n-1"}); b.Holder != "" {
			t.Errorf("holder %q", b.Holder)
		}
		s.ok(s.rdb.Del(s.ctx, s.c.SweeperKey()).Err())
		s.ok(s.rdb.LPush(s.ctx, s.c.SweeperKey(), "x").Err())
		if b := s.beat(Beat{Session: "n-1"}); b.Lock != "" { // a beat must go on
			t.Errorf("lock %q", b.Lock)
		}
		if got, err := s.c.Nodes(s.ctx); len(got) != 1 || err != nil {
			t.Errorf("nodes %v, %v", got, err)
		}
	})
}

func TestTheGossipKeyIsOneForAll(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		first, err := s.c.GossipKey(s.ctx, []byte("\x00first"))
		s.ok(err)
		second, err := s.c.GossipKey(s.ctx, []byte("second"))
		s.ok(err)
		if string(first) != "\x00first" || string(second) != string(first) {
			t.Errorf("keys %q and %q", first, second)
		}
	})
}

func TestNodeNames(t *testing.T) {
	t.Parallel()
	for session, want := range map[string]string{"web-1-abcd": "web-1", "web": "web", "-x": "-x", "a-": "a", "": ""} {
		if got := NodeName(session); got != want {
			t.Errorf("NodeName(%q) = %q, want %q", session, got, want)
		}
	}
	if got := fmt.Sprint(lockHolder(strings.Repeat("x", 22)), lockHolder(strings.Repeat("x", 22)+"n-1")); got != " n-1" && got != "n-1" {
		t.Errorf("holders %q", got)
	}
}
