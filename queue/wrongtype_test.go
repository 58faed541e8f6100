package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// calls has one call of each script that would write, into the space that
// furnished makes.
func (s *space) calls(epoch int64, lock string, got []*Claim) map[string]func() error {
	n := s.session("n-1")
	n.turn(q).n = 100
	return map[string]func() error{
		"enqueue": func() error {
			_, err := s.c.Enqueue(s.ctx, Request{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "new", Delay: time.Second}})
			return err
		},
		"exchange": func() error {
			x := Exchange{Want: 3, Settle: []*Settlement{got[0].Settle("n", nil), got[1].Settle("n", errBroke), got[2].Settle("n", Discard(errBroke))}}
			_, err := n.Exchange(s.ctx, q, x)
			return err
		},
		"beat": func() error {
			_, err := s.c.Beat(s.ctx, Beat{Session: "n-1", Info: []byte("{}"), All: true})
			return err
		},
		"condemn": func() error { _, err := s.c.Condemn(s.ctx, "n-2", noon.UnixMilli()); return err },
		"raise":   func() error { _, err := s.c.Raise(s.ctx, lock, 0); return err },
		"promote": func() error { _, err := s.c.Promote(s.ctx, q, epoch); return err },
		"reclaim": func() error {
			_, err := s.c.Reclaim(s.ctx, q, epoch, "n-1", "n", []string{got[0].ID, got[1].ID})
			return err
		},
		"trim":   func() error { _, err := s.c.Trim(s.ctx, q, epoch, TrimCursor{}); return err },
		"repair": func() error { _, err := s.c.sweep(s.ctx, repairScript, q, []any{epoch, "gone", "stray"}); return err },
		"revive": func() error { return s.c.Revive(s.ctx, q, []string{"dead"})[0].Err },
		"reschedule": func() error {
			_, err := s.c.Reschedule(s.ctx, q, "waits", time.Second, time.Time{})
			return err
		},
	}
}

// callOrder is an order in which each of the calls finds something to do.
var callOrder = []string{"enqueue", "revive", "reschedule", "repair", "exchange", "beat", "promote", "reclaim", "trim", "raise", "condemn"}

// furnish fills every key of the space, so that each script has something to do.
func (s *space) furnish() (epoch int64, lock string, got []*Claim) {
	s.t.Helper()
	n := s.session("n-1")
	s.ok(s.c.KeepLog(s.ctx, q, true))
	s.ok(s.c.KeepLog(s.ctx, reserved, true))
	epoch = s.epoch("n-1")
	lock = s.rdb.Get(s.ctx, s.c.SweeperKey()).Val()
	s.beat(Beat{Session: "n-1", Info: []byte("{}")})
	s.beat(Beat{Session: "n-2"})
	s.beat(Beat{Session: "n-3", Bye: true})
	for i := range 5 {
		s.add(JobOptions{ID: fmt.Sprint("a", i)})
	}
	s.adds("dead", "done", "waits", "waits2", "stray")
	got = s.claim(n, 7)
	s.settle(n, got[5].Settle("n", Discard(errBroke)), got[6].Settle("n", nil), got[3].Settle("n", errBroke))
	s.add(JobOptions{ID: "due", Delay: time.Second})
	s.ok(s.rdb.ZRem(s.ctx, s.key("waiting"), "stray").Err())
	s.ok(s.rdb.ZAdd(s.ctx, s.key("waiting"), redisZ(1e15, "gone")).Err())
	s.ok(s.rdb.ZAdd(s.ctx, s.key("cancelled"), redisZ(1, "x")).Err())
	s.ok(s.rdb.SAdd(s.ctx, s.key("cancels"), "a4").Err())
	s.pass(time.Minute)
	return epoch, lock, got
}

// TestAWrongTypeFailsBeforeAnyWrite puts something else in the place of each key
// of each script: the script must fail with every other key as it was.
func TestAWrongTypeFailsBeforeAnyWrite(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch, lock, got := s.furnish()
		for _, script := range allScripts() {
			call := s.calls(epoch, lock, got)[script.name]
			if call == nil {
				continue // reads only
			}
			for _, name := range script.keys {
				key := s.key(name)
				if script == beatScript || script == condemnScript || script == raiseScript {
					key = s.c.keys.whole(name)
				}
				s.broken(script.name, name, key, call)
			}
		}
	})
}

func (s *space) broken(script, name, key string, call func() error) {
	s.t.Helper()
	aside := key + ":aside"
	had := s.rdb.Exists(s.ctx, key).Val() == 1
	if had {
		s.ok(s.rdb.Rename(s.ctx, key, aside).Err())
	}
	if name == "format" || name == "sweeper" || name == "epoch" {
		s.ok(s.rdb.LPush(s.ctx, key, "foreign").Err())
	} else {
		s.ok(s.rdb.Set(s.ctx, key, "foreign", 0).Err())
	}
	before := s.snapshot()
	err := call()
	switch {
	case name == "sweeper" && script == "raise":
		if !errors.Is(err, ErrLockLost) {
			s.t.Errorf("%s with a foreign %s: %v, want the lock lost", script, name, err)
		}
		s.unchanged(before)
	case name == "sweeper": // the lock's value is read only if it is a lock: a beat and a condemn must go on
		if err != nil {
			s.t.Errorf("%s with a foreign %s: %v, want to go on", script, name, err)
		}
	case name == "format":
		fallthrough
	default:
		if !errors.Is(err, ErrWrongType) || IsUnknown(err) {
			s.t.Errorf("%s with a foreign %s: %v, want a wrong type", script, name, err)
		}
		s.unchanged(before)
	}
	s.ok(s.rdb.Del(s.ctx, key).Err())
	if had {
		s.ok(s.rdb.Rename(s.ctx, aside, key).Err())
	}
}

// TestEachFurnishedScriptWrites guards the test above: where nothing is foreign,
// each of these calls does its work.
func TestEachFurnishedScriptWrites(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		epoch, lock, got := s.furnish()
		calls := s.calls(epoch, lock, got)
		for _, name := range callOrder {
			before := fmt.Sprint(s.snapshot())
			if err := calls[name](); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if name != "promote" && before == fmt.Sprint(s.snapshot()) {
				t.Errorf("%s wrote nothing", name)
			}
		}
	})
}

func TestReadsOfAWrongTypeSaySo(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("j")
		for _, name := range []string{"jobs", "tries", "active", "waiting", "dead"} {
			key := s.key(name)
			s.ok(s.rdb.Del(s.ctx, key).Err())
			s.ok(s.rdb.Set(s.ctx, key, "foreign", 0).Err())
			if _, err := s.c.Job(s.ctx, q, "j"); !errors.Is(err, ErrWrongType) {
				t.Errorf("Job with a foreign %s: %v", name, err)
			}
			s.ok(s.rdb.Del(s.ctx, key).Err())
		}
	})
}
