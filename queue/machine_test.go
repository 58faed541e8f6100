package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// machine runs random actions on Redis and on the model.
type machine struct {
	s      *space
	m      *model
	nodes  map[string]*Session
	names  []string
	claims []*Claim // every one ever handed out, whoever has the job now
	epochs []int64
	sent   []sent
	replay *replay // of the log; nil while none is kept
}

// sent is a command that may be copied, and what the model has for it.
type sent struct {
	copied
	expect func() string
}

// newMachine empties the space and starts anew with another client.
func newMachine(s *space) *machine {
	var keys []string
	for _, k := range queueKeys {
		keys = append(keys, s.key(k))
	}
	for _, k := range clusterKeys {
		keys = append(keys, s.c.keys.whole(k))
	}
	s.ok(s.rdb.Del(s.ctx, keys...).Err())
	s.setTime(noon)
	c, err := New(s.rdb, Options{Prefix: s.c.Prefix()})
	s.ok(err)
	s.c, s.tap.keep, s.tap.copies = c, true, nil
	a := &machine{s: s, m: newModel(noon.UnixMicro()), nodes: map[string]*Session{}}
	for _, name := range []string{"a-1", "b-1", "c-1", "a-2"} {
		a.nodes[name], a.names = s.session(name), append(a.names, name)
	}
	return a
}

func (a *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":           a.compare,
		"enqueue":    a.enqueue,
		"exchange":   a.exchange,
		"exchange2":  a.exchange, // as often as all others together need it
		"exchange3":  a.exchange,
		"reschedule": a.reschedule,
		"revive":     a.revive,
		"reclaim":    a.reclaim,
		"promote":    a.promote,
		"raise":      a.raise,
		"trim":       a.trim,
		"repair":     a.repair,
		"beat":       a.beat,
		"condemn":    a.condemn,
		"mark":       a.mark,
		"copy":       a.copy,
		"time":       a.time,
		"log":        a.log,
	}
}

func (a *machine) run(t *rapid.T) {
	if rapid.Bool().Draw(t, "log") {
		a.log(t)
	}
	t.Repeat(a.actions())
}

// did compares the reply of the last command with the model's and keeps both.
func (a *machine) did(t *rapid.T, script string, expect func() string) {
	t.Helper()
	c := a.s.tap.copies[len(a.s.tap.copies)-1]
	if c.script != script {
		t.Fatalf("%s was sent instead of %s", c.script, script)
	}
	v, err := c.cmd.(interface{ Result() (any, error) }).Result()
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	a.same(t, script, digest(script, v.([]any)), expect())
	a.sent = append(a.sent, sent{c, expect})
}

func (a *machine) same(t *rapid.T, what, got, want string) {
	t.Helper()
	t.Logf("%s: %s", what, got)
	if got != want {
		t.Fatalf("%s: Redis answers %q, the model %q", what, got, want)
	}
}

// digest is what of a reply the model knows.
func digest(script string, r reply) string {
	out := r.word()
	switch {
	case script == "raise" && out == "OK":
		out += " " + r.str(1)
	case script == "exchange" && out != "STALE":
		out += " " + r.str(2)
		for i := 0; i+3 < len(r.list(3)); i += 4 {
			out += ", " + r.list(3).str(i) + " " + r.list(3).str(i+1)
		}
	case out == "OK" && script == "reclaim":
		out += fmt.Sprint(" ", len(r.list(2))/2)
	case out == "OK" && script != "beat":
		out += " " + r.str(2)
	}
	return out
}

func pick[T any](t *rapid.T, what string, from ...T) T { return rapid.SampledFrom(from).Draw(t, what) }

func (a *machine) name(t *rapid.T) string { return pick(t, "session", a.names...) }
func (a *machine) id(t *rapid.T) string   { return fmt.Sprint("j", rapid.IntRange(0, 5).Draw(t, "id")) }

// ids draws some ids: of jobs in the place, and any others.
func (a *machine) ids(t *rapid.T, place State) []string {
	list := a.m.sorted(place)
	n := rapid.IntRange(0, len(list)).Draw(t, "of them")
	list = list[len(list)-n:]
	if rapid.Bool().Draw(t, "others") {
		list = append(list, a.id(t), a.id(t))
	}
	return list
}

// command is the turn and age of the last client command.
func (a *machine) command() (turn, age int64) {
	c := a.s.tap.copies[len(a.s.tap.copies)-1]
	return c.args[1].(int64), c.args[2].(int64)
}

func (a *machine) enqueue(t *rapid.T) {
	requests := make([]Request, rapid.IntRange(1, 4).Draw(t, "n"))
	for i := range requests {
		o := JobOptions{Queue: q, Priority: Priority(pick(t, "priority", 5, 9, 0)), MaxAttempts: rapid.IntRange(1, 4).Draw(t, "max"),
			Delay: pick(t, "delay", 0, 0, 0, time.Millisecond, 40*time.Millisecond, time.Second), Retention: pick(t, "retention", 0, 0, 5*time.Second)}
		if rapid.IntRange(0, 3).Draw(t, "chosen") > 0 {
			o.ID = a.id(t)
		}
		requests[i] = Request{Kind: "k", Payload: []byte("x"), JobOptions: o}
	}
	var items []modelItem
	for i, r := range a.s.c.EnqueueMany(a.s.ctx, requests) {
		o := requests[i].JobOptions
		items = append(items, modelItem{id: r.ID, class: 9 - *o.Priority, max: o.MaxAttempts, chosen: o.ID != "",
			delay: o.Delay.Milliseconds(), retention: o.Retention.Milliseconds()})
	}
	client := a.s.c.id
	turn, age := a.command()
	a.did(t, "enqueue", func() string { return join(a.m.enqueue(client, turn, age, items)) })
}

func join(word, outcomes string) string {
	if word != "OK" {
		return word
	}
	return word + " " + outcomes
}

func (a *machine) reschedule(t *rapid.T) {
	id, delay := a.id(t), pick(t, "delay", 0, time.Millisecond, 5*time.Second)
	_, _ = a.s.c.Reschedule(a.s.ctx, q, id, delay, time.Time{})
	client := a.s.c.id
	turn, age := a.command()
	a.did(t, "reschedule", func() string { return join(a.m.reschedule(client, turn, age, id, delay.Milliseconds())) })
}

func (a *machine) revive(t *rapid.T) {
	ids := a.ids(t, Dead)
	if len(ids) == 0 {
		t.Skip("nothing to revive")
	}
	a.s.c.Revive(a.s.ctx, q, ids)
	client := a.s.c.id
	turn, age := a.command()
	a.did(t, "revive", func() string { return join(a.m.revive(client, turn, age, ids)) })
}

// exchange settles what was ever claimed, by whom it may be.
func (a *machine) exchange(t *rapid.T) {
	name := a.name(t)
	x := Exchange{Want: rapid.IntRange(0, 4).Draw(t, "want"), Risky: rapid.Bool().Draw(t, "risky"),
		Bye: rapid.IntRange(0, 19).Draw(t, "bye") == 19}
	var ends []modelEnd
	for range min(len(a.claims), rapid.IntRange(0, 3).Draw(t, "settles")) {
		c := a.claims[len(a.claims)-1-min(rapid.IntRange(0, 12).Draw(t, "back"), len(a.claims)-1)]
		one := end(t, c)
		if rapid.IntRange(0, 3).Draw(t, "again") == 3 {
			one.Again()
		}
		e := modelEnd{id: c.ID, token: c.token, verb: one.Verb, delay: ceilMillis(one.Delay), again: one.again}
		if one.tries != "" {
			parsed := parseTries(one.tries)
			e.tries = &parsed
		}
		x.Settle, ends = append(x.Settle, one), append(ends, e)
	}
	out, err := a.nodes[name].Exchange(a.s.ctx, q, x)
	if err == nil {
		a.claims = append(a.claims, out.Claims...)
	}
	turn := a.nodes[name].turn(q).n
	a.did(t, "exchange", func() string {
		word, verdicts, claims := a.m.exchange(name, turn, x.Want, x.Bye, x.Risky, ends)
		if word == "STALE" {
			return word
		}
		for _, c := range claims {
			f := strings.Fields(c)
			verdicts += ", " + f[0] + " " + f[1]
		}
		return word + " " + verdicts
	})
}

func end(t *rapid.T, c *Claim) *Settlement {
	return map[string]func() *Settlement{
		"complete": func() *Settlement { return c.Settle("n", nil) },
		"fail":     func() *Settlement { return c.Settle("n", errBroke) },
		"at once":  func() *Settlement { return c.Settle("n", RetryIn(0, errBroke)) },
		"discard":  func() *Settlement { return c.Settle("n", Discard(errBroke)) },
		"snooze":   func() *Settlement { return c.Settle("n", Snooze(time.Second)) },
		"release":  c.Released,
		"unserved": c.Unserved,
	}[pick(t, "end", "complete", "complete", "fail", "at once", "discard", "snooze", "release", "unserved")]()
}

// epoch draws a term: most often the last one.
func (a *machine) epoch(t *rapid.T) int64 {
	if len(a.epochs) == 0 {
		t.Skip("nobody swept yet")
	}
	return a.epochs[max(0, len(a.epochs)-1-pick(t, "older", 0, 0, 0, 0, 1, 2))]
}

func (a *machine) fencedOr(epoch int64, n int) string {
	if n < 0 {
		return "FENCED"
	}
	return fmt.Sprint("OK ", n)
}

func (a *machine) raise(t *rapid.T) {
	seen := pick(t, "seen", 0, a.m.epoch)
	value := strings.Repeat("x", lockToken) + a.name(t)
	a.s.ok(a.s.rdb.Set(a.s.ctx, a.s.c.SweeperKey(), value, 0).Err())
	e, err := a.s.c.Raise(a.s.ctx, value, seen)
	a.s.ok(err)
	a.epochs = append(a.epochs, e)
	a.did(t, "raise", func() string { return fmt.Sprint("OK ", a.m.raise(seen)) })
	a.sent = a.sent[:len(a.sent)-1] // a copy finds another lock
}

func (a *machine) promote(t *rapid.T) {
	e := a.epoch(t)
	_, _ = a.s.c.Promote(a.s.ctx, q, e)
	a.did(t, "promote", func() string { return a.fencedOr(e, a.m.promote(e)) })
}

func (a *machine) reclaim(t *rapid.T) {
	e, name, ids := a.epoch(t), a.name(t), a.ids(t, Active)
	_, _ = a.s.c.Reclaim(a.s.ctx, q, e, name, NodeName(name), ids)
	a.did(t, "reclaim", func() string { return a.fencedOr(e, a.m.reclaim(e, name, ids)) })
}

func (a *machine) trim(t *rapid.T) {
	e := a.epoch(t)
	_, _ = a.s.c.Trim(a.s.ctx, q, e, TrimCursor{})
	a.did(t, "trim", func() string { return a.fencedOr(e, a.m.trim(e)) })
}

// repair finds nothing to mend, whatever it suspects.
func (a *machine) repair(t *rapid.T) {
	e, args := a.epoch(t), []any{}
	for _, id := range append(a.ids(t, Active), a.ids(t, Waiting)...) {
		args = append(args, id)
	}
	_, _ = a.s.c.sweep(a.s.ctx, repairScript, q, append([]any{e}, args...))
	a.did(t, "repair", func() string {
		if a.m.fenced(e) {
			return "FENCED"
		}
		return "OK 0"
	})
}

func (a *machine) beat(t *rapid.T) {
	name, bye := a.name(t), rapid.IntRange(0, 9).Draw(t, "bye") == 9
	_, _ = a.s.c.Beat(a.s.ctx, Beat{Session: name, Bye: bye})
	a.did(t, "beat", func() string { return a.m.beat(name, bye) })
}

func (a *machine) condemn(t *rapid.T) {
	name := a.name(t)
	beat := a.m.beats[name] - int64(pick(t, "older", 0, 0, 1))
	_, _ = a.s.c.Condemn(a.s.ctx, name, beat)
	a.did(t, "condemn", func() string { return a.m.condemn(name, beat) })
}

// mark is what cancel will do to an active job.
func (a *machine) mark(t *rapid.T) {
	list := a.m.sorted(Active)
	if len(list) == 0 || rapid.IntRange(0, 2).Draw(t, "seldom") < 2 {
		t.Skip("nothing runs")
	}
	id := pick(t, "id", list...)
	a.s.ok(a.s.rdb.SAdd(a.s.ctx, a.s.key("cancels"), id).Err())
	a.m.jobs[id].marked = true
}

// copy sends a late copy of an earlier command.
func (a *machine) copy(t *rapid.T) {
	if len(a.sent) == 0 {
		t.Skip("nothing was sent")
	}
	c := a.sent[len(a.sent)-1-min(rapid.IntRange(0, 8).Draw(t, "back"), len(a.sent)-1)]
	a.s.tap.keep = false
	r := a.s.tap.again(a.s.t, a.s.rdb, c.copied)
	a.s.tap.keep = true
	a.same(t, "copy of "+c.script, digest(c.script, r), c.expect())
}

func (a *machine) time(t *rapid.T) {
	d := pick(t, "pass", time.Microsecond, time.Millisecond, 39*time.Millisecond, 101*time.Millisecond, time.Second, 5*time.Second,
		time.Minute, 11*time.Minute, -time.Second)
	a.s.pass(d)
	a.m.us += d.Microseconds()
}

func (a *machine) compare(t *rapid.T) {
	for i := 1; i < len(a.claims); i++ {
		if a.claims[i].Fence <= a.claims[i-1].Fence {
			t.Fatalf("fence %d after %d", a.claims[i].Fence, a.claims[i-1].Fence)
		}
	}
	got, err := readState(context.Background(), a.s)
	if err != nil {
		t.Fatal(err)
	}
	want := a.m.state()
	for _, k := range stateParts {
		if got[k] != want[k] {
			t.Fatalf("%s\nin Redis %s\nmodel    %s", k, got[k], want[k])
		}
	}
	if w := got["tokens"]; strings.Contains(w, "2") || got["waiting"] != "" && !strings.HasPrefix(w, "1") {
		t.Fatalf("wake and poke tokens: %s, waiting: %s", w, got["waiting"])
	}
	if a.replay != nil {
		a.replay.follow(t, a.s)
	}
	for id, j := range a.m.jobs {
		if j.spent > j.max {
			t.Fatalf("%s has spent %d of %d attempts", id, j.spent, j.max)
		}
	}
}

func TestEveryScriptDoesWhatTheModelDoes(t *testing.T) {
	both(t, func(t *testing.T, s *space) {
		rapid.Check(t, func(rt *rapid.T) {
			newMachine(s).run(rt)
		})
	})
}
