package queue

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

var instants = regexp.MustCompile(`\b17\d{11,14}\b`)

// told returns what was written to a log since the last call: an entry a line,
// without its time, the moves behind bars, and other times counted from noon.
func (s *space) told(queue string) string {
	s.t.Helper()
	key := s.c.keys.of(queue, "log")
	entries, err := s.c.ReadLog(s.ctx, queue, 0, 1000)
	s.ok(err)
	s.ok(s.rdb.Del(s.ctx, key).Err())
	var out []string
	for i, e := range entries {
		if e.Index != int64(i) || !e.At.Equal(s.now) {
			s.t.Errorf("entry %d has the index %d and is of %v, want %v", i, e.Index, e.At, s.now)
		}
		text := strings.Replace(e.Raw, fmt.Sprint(" ", s.now.UnixMicro()), "", 1)
		text = strings.ReplaceAll(text, s.c.id, "client")
		out = append(out, instants.ReplaceAllStringFunc(text, func(n string) string {
			if since := parseInt(n) - noon.UnixMicro(); len(n) == 16 {
				return fmt.Sprintf("%+dus", since)
			}
			return fmt.Sprintf("%+d", parseInt(n)-noon.UnixMilli())
		}))
	}
	return strings.ReplaceAll(strings.Join(out, " || "), "\n", " | ")
}

func (s *space) wantTold(queue, what, want string) {
	s.t.Helper()
	if got := s.told(queue); got != want {
		s.t.Errorf("%s: the log says\n  %s\nwant\n  %s", what, got, want)
	}
}

func TestTheLogSaysWhatWasStoredAndMoved(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.ok(s.c.KeepLog(s.ctx, q, true))
		s.c.EnqueueMany(s.ctx, []Request{
			{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "-", MaxAttempts: 3}},
			{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "b", MaxAttempts: 4, Delay: time.Second}},
			{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "c", MaxAttempts: 5, At: noon.Add(-time.Second)}},
			{Kind: "k", JobOptions: JobOptions{Queue: q, ID: "b"}}})
		s.wantTold(q, "enqueue",
			"enqueue client 1 | store - waiting - 3 | store b delayed +1000 4 | store c waiting -1000 5 | exists b")
		for _, delay := range []time.Duration{0, time.Second} {
			_, err := s.c.Reschedule(s.ctx, q, "b", delay, time.Time{})
			s.ok(err)
		}
		_, _ = s.c.Reschedule(s.ctx, q, "nobody", 0, time.Time{})
		s.wantTold(q, "reschedule",
			"reschedule client 2 | reschedule b delayed waiting +0 || reschedule client 3 | reschedule b waiting delayed +1000")
		epoch := s.epoch("n-9")
		s.promote(epoch)
		s.promote(epoch)
		s.wantTold(q, "a promote that finds nothing, the first of its epoch", "promote - +0us")
		s.pass(1050 * time.Millisecond)
		s.promote(epoch)
		s.wantTold(q, "promote", "promote - +0us | promote b +1000")
		n := s.session("n-1")
		got := s.claim(n, 5)
		s.wantTold(q, "claim",
			"exchange n-1 1 | join n-1 | claim - +1050000us n-1 0 | claim c +1050001us n-1 0 | claim b +1050002us n-1 0")
		s.settle(n, got[0].Settle("n", Discard(errBroke)))
		s.ok(s.c.Revive(s.ctx, q, []string{got[0].ID, "nobody"})[0].Err)
		s.wantTold(q, "revive",
			"exchange n-1 2 | settle - dead +1050000us n-1 D 1 - - - || revive client 5 | revive - 0")
	})
}

func TestTheLogSaysHowAttemptsEnd(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		n := s.session("n-1")
		s.adds("a", "b", "c", "d", "e", "f")
		s.add(JobOptions{ID: "g", Retention: time.Hour})
		id := s.add(JobOptions{})
		got := s.claim(n, 8)
		s.ok(s.rdb.SAdd(s.ctx, s.key("cancels"), "f").Err())
		s.ok(s.c.KeepLog(s.ctx, q, true)) // in the middle
		again := got[5].Settle("n", errBroke)
		again.Again()
		s.settle(n, got[0].Settle("n", nil), got[1].Settle("n", RetryIn(time.Second, errBroke)), got[2].Settle("n", Discard(errBroke)),
			got[3].Settle("n", Snooze(2*time.Second)), got[4].Released(), again, got[6].Settle("n", nil), got[7].Settle("n", nil), got[7].Settle("n", nil))
		s.wantTold(q, "settlements", "exchange n-1 2 | settle a completed +0us n-1 C 0 - +600000 - | settle b delayed +1us n-1 R 1 +1000 - -"+
			" | settle c dead +2us n-1 D 1 - - - | settle d delayed +3us n-1 S 0 +2000 - - | settle e waiting +4us n-1 L 0 - - -"+
			" | settle f cancelled +5us n-1 x 1 - +600000 - | settle g completed +6us n-1 C 0 - +3600000 -"+
			" | settle "+id+" completed +7us n-1 C 0 - - - | stale "+id+" +7us n-1 c")
		late := got[1].Unserved()
		s.settle(n, got[0].Settle("n", nil), late)
		late.Again()
		s.settle(n, late)
		s.wantTold(q, "late ones",
			"exchange n-1 3 | stale a +0us n-1 C | stale b +1us n-1 U || exchange n-1 4 | stale b +1us n-1 u")
		s.pass(1200 * time.Millisecond)
		s.exchange(n, Exchange{Bye: true})
		s.exchange(n, Exchange{Bye: true})
		s.wantTold(q, "the net under the sweeper, and bye", "exchange n-1 5 | promote b +1000 | bye n-1")
	})
}

func TestTheLogSaysWhatTheSweeperDoes(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.ok(s.c.KeepLog(s.ctx, q, true))
		n, epoch := s.session("n-1"), s.epoch("n-9")
		s.add(JobOptions{ID: "last", MaxAttempts: 1})
		s.adds("first", "second", "marked", "lost")
		s.ok(s.rdb.HSet(s.ctx, s.key("tries"), "second", "1 1 0 1").Err())
		s.claim(n, 5)
		s.ok(s.rdb.SAdd(s.ctx, s.key("cancels"), "marked").Err())
		s.ok(s.rdb.HDel(s.ctx, s.key("jobs"), "lost").Err())
		s.told(q)
		_, err := s.c.Reclaim(s.ctx, q, epoch, "n-1", "n", nil)
		s.ok(err)
		_, err = s.c.Reclaim(s.ctx, q, epoch, "n-1", "n", []string{"first", "second", "marked", "last", "lost", "nobody"})
		s.ok(err)
		s.wantTold(q, "reclaim",
			"reclaim - +0us | gone n-1 || reclaim - +0us | reclaim first waiting +1us n-1 1 - - | reclaim second delayed +2us n-1 2 +4000 -"+
				" | reclaim marked cancelled +3us n-1 0 - +600000 | reclaim last dead +0us n-1 1 - - | reclaim lost - +4us n-1 0 - -")
		_, err = s.c.sweep(s.ctx, repairScript, q, []any{epoch - 1, "first"})
		if !errors.As(err, new(*FencedError)) {
			t.Errorf("an older epoch: %v", err)
		}
		s.wantTold(q, "an older epoch", "")
		s.ok(s.rdb.HDel(s.ctx, s.key("jobs"), "first").Err())
		s.ok(s.rdb.ZRem(s.ctx, s.key("delayed"), "second").Err())
		_, err = s.c.sweep(s.ctx, repairScript, q, []any{epoch, "first", "second", "marked"})
		s.ok(err)
		s.wantTold(q, "repair", "repair - +0us | orphan first waiting | stray second")
		s.one(s.session("n-2"))
		s.told(q)
		s.ok(s.rdb.ZAdd(s.ctx, s.key("dead"), redisZ(1, "old")).Err())
		_, err = s.c.sweep(s.ctx, trimScript, q, []any{epoch, 0, "0", "0", "0"})
		s.ok(err)
		s.wantTold(q, "dead is full", "trim - +0us | drop old - - | drop last completed +600000")
		s.pass(idMemory)
		_, err = s.c.Trim(s.ctx, q, epoch, TrimCursor{})
		s.ok(err)
		s.wantTold(q, "trim", "trim - +0us | forget last completed | forget marked cancelled")
	})
}

func TestTheLogSaysWhatAClaimDidNotTake(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.ok(s.c.KeepLog(s.ctx, q, true))
		s.adds("lost", "spent", "risky", "riskier")
		s.ok(s.rdb.HSet(s.ctx, s.key("tries"), "spent", "25 1 0 25", "risky", "2 2 0 2", "riskier", "2 2 0 2").Err())
		s.ok(s.rdb.HDel(s.ctx, s.key("jobs"), "lost").Err())
		s.told(q)
		s.exchange(s.session("n-1"), Exchange{Want: 9, Risky: true})
		s.wantTold(q, "claim",
			"exchange n-1 1 | join n-1 | orphan lost waiting | spentout spent 25 | claim risky +0us n-1 2 | later riskier +1000")
	})
}

func TestTheLogOfTheSpaceSaysWhoDied(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.ok(s.c.KeepLog(s.ctx, reserved, true))
		s.beat(Beat{Session: "n-1"})
		s.beat(Beat{Session: "n-2"})
		s.wantTold(reserved, "a beat", "")
		s.epoch("n-1")
		s.beat(Beat{Session: "n-1", Bye: true})
		for _, beat := range []int64{1, noon.UnixMilli(), noon.UnixMilli()} { // alive, done, absent
			_, err := s.c.Condemn(s.ctx, "n-2", beat)
			s.ok(err)
		}
		s.wantTold(reserved, "raise, bye and condemn",
			"raise - +0us | raise n-1 || beat n-1 0 | bye n-1 || condemn - 0 | condemn n-2")
		s.wantTold(q, "the queue", "")
	})
}

func TestALogIsOnlyWrittenWhileItIsKept(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		s.adds("a")
		s.ok(s.c.KeepLog(s.ctx, q, true))
		s.adds("b")
		s.ok(s.c.KeepLog(s.ctx, q, false))
		s.adds("c")
		entries, err := s.c.ReadLog(s.ctx, q, 0, 10)
		if err != nil || len(entries) != 1 || entries[0].Moves[0].ID != "b" {
			t.Errorf("the log has %+v, %v", entries, err)
		}
		if none, err := s.c.ReadLog(s.ctx, q, 1, 10); err != nil || len(none) != 0 {
			t.Errorf("behind its end: %+v, %v", none, err)
		}
		s.ok(s.rdb.RPush(s.ctx, s.key("log"), "what is this").Err())
		if some, err := s.c.ReadLog(s.ctx, q, 0, 10); len(some) != 1 || err == nil || !strings.Contains(err.Error(), "entry 1") {
			t.Errorf("with a foreign entry: %+v, %v", some, err)
		}
		if err := s.c.KeepLog(s.ctx, "a b", true); !errors.Is(err, ErrBadInput) {
			t.Errorf("KeepLog of a bad name: %v", err)
		}
		if _, err := s.c.ReadLog(s.ctx, q, -1, 10); !errors.Is(err, ErrBadInput) {
			t.Errorf("ReadLog from -1 on: %v", err)
		}
	})
}

func TestEntriesOfTheLogAreReadWhole(t *testing.T) {
	t.Parallel()
	settle := LogMove{What: "settle", ID: "a", From: Active, To: Delayed, Fence: 7, Session: "n-1", Shown: 5, Verb: "R", Again: true, Due: 9, Spent: 2}
	for text, want := range map[string]LogEntry{
		"exchange 1772366400000001 n-2 3\nsettle a delayed 7 n-1 r 2 9 - 5": {At: noon.Add(time.Microsecond), Who: "n-2", Turn: 3, Moves: []LogMove{settle}},
		"reclaim 1772366400000000 - 8\nreclaim a - 7 n-1 1 - -": {At: noon, Epoch: 8,
			Moves: []LogMove{{What: "reclaim", ID: "a", From: Active, Fence: 7, Session: "n-1", Spent: 1}}},
		"trim 1772366400000000 - 8\ndrop a completed 9": {At: noon, Epoch: 8, Moves: []LogMove{{What: "drop", ID: "a", From: Dead, To: Completed, Until: 9}}},
		"promote 1772366400000000 - 8":                  {At: noon, Epoch: 8},
	} {
		want.Raw, want.Script = text, strings.Fields(text)[0]
		if got, err := parseEntry(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as\n%+v, %v, want\n%+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "exchange", "exchange x n-1 1", "exchange 1 n-1 x", "exchange 1 n-1 1\n", "exchange 1 n-1 1\nclaim a 1 n-1",
		"exchange 1 n-1 1\nclaim a x n-1 0", "exchange 1 n-1 1\nsteal a", "exchange 1 n-1 1\njoin  n-1"} {
		if got, err := parseEntry(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestScriptsAreKnownByTheirHash(t *testing.T) {
	t.Parallel()
	names := Scripts()
	if len(names) != len(allScripts()) || names[exchangeScript.lua.Hash()] != "exchange" {
		t.Errorf("Scripts are %v", names)
	}
}
