package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// replay knows of a queue only what its log says, from where it began to read.
type replay struct {
	place     map[string]State
	token     map[string]string // of the active ones
	spent     map[string]int
	gone      map[string]bool
	condemned map[string]bool
	turns     map[string]int64
	epoch     int64
	next      map[string]int64 // index by log
}

// log switches the log on, in whatever state the queue is, or off.
func (a *machine) log(t *rapid.T) {
	on := a.replay == nil
	for _, queue := range []string{q, reserved} {
		a.s.ok(a.s.c.KeepLog(a.s.ctx, queue, on))
	}
	if a.replay = nil; on {
		a.replay = newReplay(t, a.s)
	}
}

// newReplay begins with what Redis holds now.
func newReplay(t *rapid.T, s *space) *replay {
	r := readPlaces(t, s)
	r.turns, r.next = map[string]int64{}, map[string]int64{}
	for _, queue := range []string{q, reserved} {
		r.next[queue] = s.rdb.LLen(s.ctx, s.c.keys.of(queue, "log")).Val()
	}
	return r
}

// readPlaces is Redis as a replay should be.
func readPlaces(t *rapid.T, s *space) *replay {
	ctx, pipe := context.Background(), s.rdb.Pipeline()
	r := &replay{place: map[string]State{}, spent: map[string]int{}, gone: map[string]bool{}, condemned: map[string]bool{}}
	held, tried := pipe.HGetAll(ctx, s.key("active")), pipe.HGetAll(ctx, s.key("tries"))
	holders, condemned := pipe.HGetAll(ctx, s.key("holders")), pipe.ZRange(ctx, s.c.keys.whole("condemned"), 0, -1)
	sets := make([]*redis.StringSliceCmd, len(places))
	for i, p := range places {
		sets[i] = pipe.ZRange(ctx, s.key(p), 0, -1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	for i, p := range places {
		for _, id := range sets[i].Val() {
			r.place[id] = State(p)
		}
	}
	r.token = held.Val()
	for id := range r.token {
		r.place[id] = Active
	}
	for id, v := range tried.Val() {
		r.spent[id] = parseTries(v).spent
	}
	for session, v := range holders.Val() {
		if marked(session, v) == "" {
			r.gone[session] = true
		}
	}
	for _, session := range condemned.Val() {
		r.condemned[session] = true
	}
	return r
}

// follow reads what is new in the log and compares the replay with Redis.
func (r *replay) follow(t *rapid.T, s *space) {
	for queue, next := range r.next {
		entries, err := s.c.ReadLog(s.ctx, queue, next, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			t.Logf("log %s", strings.ReplaceAll(e.Raw, "\n", " | "))
			if e.Index != next || !e.At.Equal(s.now) {
				t.Fatalf("entry %+v: want index %d, at %v", e, next, s.now)
			}
			if next++; queue == q {
				r.sender(t, e)
			}
			for _, m := range e.Moves {
				r.apply(t, e, m)
			}
		}
		r.next[queue] = next
	}
	r.compare(t, readPlaces(t, s))
}

// sender checks turns and epochs. The mark of a gone session stands where its
// last turn stood: it may settle in any order.
func (r *replay) sender(t *rapid.T, e LogEntry) {
	if len(e.Moves) > 0 && e.Moves[0].What == "join" {
		delete(r.turns, e.Who)
	}
	if e.Who != "" && !r.gone[e.Who] && e.Turn <= r.turns[e.Who] || e.Epoch != 0 && e.Epoch < r.epoch || e.Who == "" && e.Epoch == 0 {
		t.Fatalf("entry %q: the last turn was %d, the last epoch %d", e.Raw, r.turns[e.Who], r.epoch)
	}
	if len(e.Moves) == 0 && e.Epoch <= r.epoch {
		t.Fatalf("entry %q says nothing new", e.Raw)
	}
	r.turns[e.Who], r.epoch = e.Turn, max(r.epoch, e.Epoch)
}

func (r *replay) apply(t *rapid.T, e LogEntry, m LogMove) {
	switch m.What {
	case "join", "exists", "stale", "raise":
		return
	case "condemn":
		r.condemned[m.ID] = true
		return
	case "gone", "bye":
		if e.Script == "beat" {
			r.condemned[m.ID] = true
		} else {
			r.gone[m.ID] = true
		}
		return
	case "settle", "reclaim":
		if token := fmt.Sprint(m.Fence, " ", m.Session); token != r.token[m.ID] || m.Shown != 0 {
			t.Fatalf("%+v, and the token was %q", m, r.token[m.ID])
		}
	case "claim":
		if m.Spent != r.spent[m.ID] || m.Session != e.Who || r.gone[m.Session] {
			t.Fatalf("%+v by %s (gone: %v), and %d attempts were spent", m, e.Who, r.gone[m.Session], r.spent[m.ID])
		}
	}
	if m.From != r.place[m.ID] {
		t.Fatalf("%+v, and it was in %q", m, r.place[m.ID])
	}
	r.move(m)
}

// move takes a job to its new place.
func (r *replay) move(m LogMove) {
	delete(r.token, m.ID)
	switch m.What {
	case "settle", "reclaim", "spentout", "revive":
		r.spent[m.ID] = m.Spent
	case "store":
		delete(r.spent, m.ID)
	case "claim":
		r.token[m.ID] = fmt.Sprint(m.Fence, " ", m.Session)
	}
	if r.place[m.ID] = m.To; m.To == "" || (m.To == Completed || m.To == Cancelled) && m.Until == 0 {
		delete(r.place, m.ID)
	}
}

func (r *replay) compare(t *rapid.T, kept *replay) {
	if !maps.Equal(r.place, kept.place) || !maps.Equal(r.token, kept.token) {
		t.Fatalf("places by the log %v, in Redis %v\ntokens by the log %v, in Redis %v", r.place, kept.place, r.token, kept.token)
	}
	for id, place := range r.place {
		if ended := place == Completed || place == Cancelled; !ended && r.spent[id] != kept.spent[id] {
			t.Fatalf("%s has spent %d attempts by the log, %d in Redis", id, r.spent[id], kept.spent[id])
		}
	}
	if !maps.Equal(r.condemned, kept.condemned) {
		t.Fatalf("condemned by the log %v, in Redis %v", r.condemned, kept.condemned)
	}
	for _, session := range slices.Sorted(maps.Keys(kept.gone)) { // trim forgets them
		if !r.gone[session] {
			t.Fatalf("%s is gone, and the log does not say so", session)
		}
	}
	r.gone = kept.gone
}
