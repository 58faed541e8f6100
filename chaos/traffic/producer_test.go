package traffic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/chaos/work"
)

// byNumber pairs the lines of each call and holds what must be true of any
// history.
func byNumber(t *testing.T, ops []history.Op) map[string][]history.Op {
	t.Helper()
	out := map[string][]history.Op{}
	for _, op := range ops {
		key := fmt.Sprint(op.Client, "/", op.N)
		out[key] = append(out[key], op)
		switch pair := out[key]; {
		case pair[0].Phase != history.Invoke, len(pair) > 2, len(pair) == 2 && (pair[1].Phase == history.Invoke || pair[1].T < pair[0].T):
			t.Errorf("lines of call %s: %+v", key, pair)
		case len(pair) == 2 && pair[0].ID != "" && pair[0].ID != pair[1].ID:
			t.Errorf("call %s was of job %s and ends with %s", key, pair[0].ID, pair[1].ID)
		}
	}
	return out
}

// library has no calls by the command line.
func library(jobs int, d time.Duration) history.Settings {
	s := usual(jobs, d)
	s.Work.CLI = 0
	return s
}

func TestAProducerFinishesItsPart(t *testing.T) {
	t.Parallel()
	settings := library(200, 300*time.Millisecond)
	settings.Work.Revived = 0
	dir, prefix := folder(t, 3, settings), redistest.Prefix(t)
	for n := 1; n <= 2; n++ {
		if err := Produce(t.Context(), Options{Dir: dir, Number: n, Redis: redistest.Shared(t).URL(), Prefix: prefix}); err != nil {
			t.Fatal(err)
		}
	}
	jobs := stored(t, space(t, redistest.Shared(t).URL(), prefix), "mail", "orders")
	called, total := map[int]bool{}, len(Plan(3, settings))
	for key, pair := range byNumber(t, calls(t, dir)) {
		end := pair[len(pair)-1]
		if end.Phase == history.Invoke {
			t.Errorf("call %s has no end", key)
		}
		if end.Verb != Enqueue {
			continue
		}
		called[(end.N-1)%total+1] = true
		payload, there := jobs[end.ID]
		task, err := work.Verify(payload)
		made := there && task.Op == key // another call may have made a job with this chosen id
		if made && (err != nil || end.Sum != work.Sum(payload)) {
			t.Errorf("call %s made the payload %q: %v", key, payload, err)
		}
		if end.Phase == history.OK && !made || end.Phase == history.Fail && made {
			t.Errorf("call %+v made its job: %v", end, made)
		}
	}
	if len(called) != 200 {
		t.Errorf("%d of 200 jobs were called for", len(called))
	}
}

func TestFollowersFindTheirJob(t *testing.T) {
	t.Parallel()
	s := library(40, 100*time.Millisecond)
	s.Work = history.Work{Moved: 1000, Later: time.Second}
	dir := folder(t, 3, s)
	if err := Produce(t.Context(), Options{Dir: dir, Number: 1, Redis: redistest.Shared(t).URL(), Prefix: redistest.Prefix(t)}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, op := range calls(t, dir) {
		if op.Verb == Reschedule && op.Phase == history.OK {
			n++
			if due := time.UnixMilli(op.Due); time.Until(due).Abs() > time.Minute || op.ID == "" {
				t.Errorf("call %+v", op)
			}
		}
	}
	if n < 20 { // one that comes before its job's call is over is left out
		t.Errorf("%d of 40 jobs were rescheduled", n)
	}
}

func TestARevivalOfWhatIsNotDeadIsTriedAFewTimes(t *testing.T) {
	t.Parallel()
	s := history.Settings{Jobs: 1, Duration: time.Millisecond, Work: history.Work{Revived: 1000}}
	dir := folder(t, 1, s)
	if err := Produce(t.Context(), Options{Dir: dir, Number: 1, Redis: redistest.Shared(t).URL(), Prefix: redistest.Prefix(t)}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, op := range calls(t, dir) {
		if op.Verb == Revive && op.Phase == history.Fail {
			n++
		}
	}
	if n != reviveTries {
		t.Errorf("%d tries, want %d", n, reviveTries)
	}
}

func TestAProducerOutlivesAnOutageAtABoundedRate(t *testing.T) {
	t.Parallel()
	server := redistest.Dedicated(t, redistest.WithAOF("always"))
	s := library(60, time.Millisecond)
	s.Work = history.Work{}
	dir := folder(t, 1, s)
	server.Kill()
	done := make(chan error, 1)
	go func() {
		done <- Produce(t.Context(), Options{Dir: dir, Number: 1, Redis: server.URL(), InFlight: 4})
	}()
	await(t, "calls that failed", func() bool { return len(calls(t, dir)) >= 4*4*2 }) // four tries in each slot
	if tries := len(byNumber(t, calls(t, dir))); tries > 4*6 {
		t.Errorf("%d calls in less than 4 s", tries)
	}
	server.Restart()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ok, jobs := 0, stored(t, space(t, server.URL(), ""), "mail", "orders")
	for _, pair := range byNumber(t, calls(t, dir)) {
		if pair[1].Phase == history.OK {
			ok++
		}
	}
	if ok != 60 || len(jobs) != 60 {
		t.Errorf("%d calls succeeded, %d jobs are there, want 60", ok, len(jobs))
	}
}

func TestAProducerThatIsStoppedSaysWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	dir := folder(t, 1, history.Settings{Jobs: 10, Duration: time.Hour})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := Produce(ctx, Options{Dir: dir, Number: 1, Redis: redistest.Shared(t).URL(), Prefix: redistest.Prefix(t)}); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
	for key, pair := range byNumber(t, calls(t, dir)) {
		if len(pair) != 2 {
			t.Errorf("call %s has no end", key)
		}
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	dir := folder(t, 1, usual(1, time.Second))
	for name, o := range map[string]Options{
		"no folder":       {Number: 1, Redis: "redis://127.0.0.1:1"},
		"no address":      {Dir: dir, Number: 1},
		"a third of two":  {Dir: dir, Number: 3, Redis: "redis://127.0.0.1:1"},
		"none at all":     {Dir: dir, Redis: "redis://127.0.0.1:1"},
		"a bad namespace": {Dir: dir, Number: 1, Redis: "redis://127.0.0.1:1", Prefix: "a b"},
	} {
		if err := Produce(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestHelperProduces is the body of a producer that gets killed.
func TestHelperProduces(t *testing.T) {
	dir, redis, prefix := os.Getenv("KELPIE_TEST_PRODUCE"), os.Getenv("KELPIE_TEST_REDIS"), os.Getenv("KELPIE_TEST_PREFIX")
	if dir == "" {
		return // not the killed process
	}
	if err := Produce(t.Context(), Options{Dir: dir, Number: 1, Redis: redis, Prefix: prefix, InFlight: 8}); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherProcessGoesOnWhereAKilledOneStopped(t *testing.T) {
	t.Parallel()
	s := library(600, 1500*time.Millisecond)
	s.Work.Producers, s.Work.Moved, s.Work.Revived = 1, 0, 0
	dir, prefix, address := folder(t, 5, s), redistest.Prefix(t), redistest.Shared(t).URL()
	for kills := 1; kills <= 2; kills++ {
		before := len(calls(t, dir))
		cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProduces$")
		cmd.Env = append(os.Environ(), "KELPIE_TEST_PRODUCE="+dir, "KELPIE_TEST_REDIS="+address, "KELPIE_TEST_PREFIX="+prefix)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "some calls", func() bool { return len(calls(t, dir)) > before+50 })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if err := Produce(t.Context(), Options{Dir: dir, Number: 1, Redis: address, Prefix: prefix}); err != nil {
		t.Fatal(err)
	}
	plan, jobs := Plan(5, s), stored(t, space(t, address, prefix), "mail", "orders")
	last := map[int]string{} // by item: how its calls stand
	for key, pair := range byNumber(t, calls(t, dir)) {
		item := (pair[0].N-1)%len(plan) + 1
		if pair[len(pair)-1].Phase == history.OK {
			if last[item] == history.OK {
				t.Errorf("call %s: item %d was stored twice", key, item)
			}
			last[item] = history.OK
			if jobs[pair[1].ID] == nil {
				t.Errorf("call %s: its job is not there", key)
			}
		} else if last[item] == "" {
			last[item] = history.Unknown
		}
	}
	if len(last) != 600 {
		t.Errorf("%d of 600 items were called for", len(last))
	}
}

func TestWhoGetsANewCall(t *testing.T) {
	t.Parallel()
	plain, chosen, revive, move := Item{N: 1, Verb: Enqueue}, Item{N: 2, Verb: Enqueue, ID: "x"}, Item{N: 3, Verb: Revive}, Item{N: 4, Verb: Reschedule}
	p := &producer{tries: map[int]int{}, total: 4}
	for name, tt := range map[string]struct {
		it   Item
		e    ending
		want bool
	}{
		"a refusal that may pass":                {plain, ending{called: true, phase: history.Fail}, true},
		"one that stays":                         {plain, ending{called: true, phase: history.Fail, final: true}, false},
		"unknown with a chosen id":               {chosen, ending{called: true, phase: history.Unknown}, true},
		"unknown, and another would be one more": {plain, ending{called: true, phase: history.Unknown}, false},
		"stored":                                 {chosen, ending{called: true, phase: history.OK}, false},
		"not dead yet":                           {revive, ending{called: true, phase: history.Fail}, true},
		"maybe revived":                          {revive, ending{called: true, phase: history.Unknown}, false},
		"not to be moved":                        {move, ending{called: true, phase: history.Fail}, false},
		"nobody to move":                         {move, ending{}, false},
	} {
		if got := p.again(tt.it, tt.e); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for range 3 {
		for _, it := range []Item{plain, chosen, revive, move} {
			want := p.tries[it.N]
			if item, try := p.item(p.number(it)); item != it.N || try != want {
				t.Errorf("item %d, try %d became %d, %d", it.N, want, item, try)
			}
		}
	}
}

// TestJobsOfTheCommandLine builds kelpie, since it is what is called.
func TestJobsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds kelpie, which takes long")
	}
	program := filepath.Join(t.TempDir(), "kelpie")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/kelpie").CombinedOutput(); err != nil {
		t.Fatalf("build kelpie: %v\n%s", err, out)
	}
	s := usual(60, 100*time.Millisecond)
	s.Work = history.Work{CLI: 1000, Chosen: 300, Delayed: 300, Later: time.Hour, Overrun: 100}
	dir, prefix, address := folder(t, 2, s), redistest.Prefix(t), redistest.Shared(t).URL()
	if err := Produce(t.Context(), Options{Dir: dir, Number: 1, Redis: address, Prefix: prefix, Kelpie: program, InFlight: 4}); err != nil {
		t.Fatal(err)
	}
	c := space(t, address, prefix)
	jobs := stored(t, c, "mail", "orders")
	single, many := 0, map[string]int{}
	for key, pair := range byNumber(t, calls(t, dir)) {
		end := pair[1]
		task, err := work.Verify(jobs[end.ID])
		if end.Phase != history.OK || end.By != ByCLI || err != nil || task.Op != key || end.Sum != work.Sum(jobs[end.ID]) {
			t.Fatalf("call %+v, %v", end, err)
		}
		r, err := c.Job(t.Context(), end.Queue, end.ID)
		it := Plan(2, s)[end.N-1]
		if err != nil || r.Priority != it.Priority || r.MaxAttempts != it.Max || r.DueAt.Sub(r.EnqueuedAt).Milliseconds() != end.Delay ||
			r.Retention != it.Retention || it.Timeout != 0 && r.Timeout != it.Timeout || end.Chosen != strings.HasPrefix(end.ID, "chosen-") {
			t.Errorf("item %+v became %+v, %v", it, r, err)
		}
		many[strconv.Itoa(it.Group)]++
	}
	for _, n := range many {
		if n == 1 {
			single++
		}
	}
	if len(jobs) != 60 || single == 0 || single == len(many) {
		t.Errorf("%d jobs in %d calls, %d of them with one", len(jobs), len(many), single)
	}
}
