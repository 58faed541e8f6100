package watch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/chaos/work"
	"github.com/kelpiehq/kelpie/queue"
)

func TestAllThatAQueueHoldsIsRead(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	rdb, space := connect(t, redistest.Shared(t).URL(), prefix)
	requests := make([]queue.Request, 2500) // more than a page of anything
	for i := range requests {
		requests[i] = queue.Request{Kind: "k", Payload: fmt.Append(nil, "payload ", i), JobOptions: queue.JobOptions{
			Queue: "mail", ID: fmt.Sprintf("j%04d", i), Delay: time.Duration(i%2) * time.Hour,
		}}
	}
	for _, r := range space.EnqueueMany(t.Context(), requests) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	claim(t, space, "n1-x", "mail", 1)
	f, err := Final(t.Context(), rdb, space, []string{"mail", "never"})
	if err != nil {
		t.Fatal(err)
	}
	q := f.Queues["mail"]
	if len(q.Places["waiting"]) != 1249 || len(q.Places["delayed"]) != 1250 || !slices.Equal(q.Places["active"], []string{"j0000"}) || q.Tokens["j0000"] == "" {
		t.Errorf("%d waiting, %d delayed, active %v", len(q.Places["waiting"]), len(q.Places["delayed"]), q.Tokens)
	}
	if len(q.Bodies) != 2500 || len(q.Sums) != 2500 || q.Sums["j1234"] != work.Sum([]byte("payload 1234")) {
		t.Errorf("%d bodies, %d sums, %q", len(q.Bodies), len(q.Sums), q.Sums["j1234"])
	}
	if q.Totals["enqueued"] != 2500 || q.Totals["claimed"] != 1 {
		t.Errorf("totals %v", q.Totals)
	}
	if f.Settled || f.T == 0 || len(f.Queues["never"].Bodies) != 0 {
		t.Errorf("settled %v, T %d, never %+v", f.Settled, f.T, f.Queues["never"])
	}
}

func TestWhatMustNotBeIsReadAsItIs(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	rdb, space := connect(t, redistest.Shared(t).URL(), prefix)
	ctx, key := t.Context(), func(what string) string { return space.Key("mail", what) }
	rdb.ZAdd(ctx, key("completed"), redis.Z{Score: 1, Member: "nobody"})
	rdb.ZAdd(ctx, key("dead"), redis.Z{Score: 1, Member: "twice"})
	rdb.ZAdd(ctx, key("cancelled"), redis.Z{Score: 1, Member: "twice"})
	rdb.HSet(ctx, key("jobs"), "homeless", "1 k 3 5 7\npay\nload", "cut", "1 k 3 5 7 c\n", "broken", "no newline")
	rdb.HSet(ctx, key("tries"), "twice", "1 0 0 1\n1 1 n1 failed \"x\"")
	rdb.SAdd(ctx, key("cancels"), "b", "a")
	rdb.ZAdd(ctx, space.Key(Whole, "sessions"), redis.Z{Score: 1, Member: "n1-x"})
	rdb.ZAdd(ctx, space.Key(Whole, "condemned"), redis.Z{Score: 1, Member: "n2-x"})
	f, err := Final(ctx, rdb, space, []string{"mail"})
	if err != nil {
		t.Fatal(err)
	}
	q := f.Queues["mail"]
	for place, want := range map[string]string{
		"waiting": "[]", "delayed": "[]", "active": "[]", "completed": "[nobody]", "dead": "[twice]", "cancelled": "[twice]",
	} {
		if got := fmt.Sprint(q.Places[place]); got != want {
			t.Errorf("%s: %s, want %s", place, got, want)
		}
	}
	if got := fmt.Sprint(q.Bodies); got != "map[broken:no newline cut:1 k 3 5 7 c homeless:1 k 3 5 7]" {
		t.Errorf("bodies %s", got)
	}
	if len(q.Sums) != 1 || q.Sums["homeless"] != work.Sum([]byte("pay\nload")) {
		t.Errorf("sums %v", q.Sums)
	}
	if q.Tries["twice"] != "1 0 0 1\n1 1 n1 failed \"x\"" || fmt.Sprint(q.Cancels) != "[a b]" {
		t.Errorf("tries %q, cancels %v", q.Tries, q.Cancels)
	}
	if !f.Settled || fmt.Sprint(f.Sessions, f.Condemned) != "[n1-x] [n2-x]" {
		t.Errorf("settled %v, sessions %v, condemned %v", f.Settled, f.Sessions, f.Condemned)
	}
}

func TestAPlaceOfAnotherTypeIsAnError(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	rdb, space := connect(t, redistest.Shared(t).URL(), prefix)
	for _, what := range []string{"dead", "tries", "cancels", "jobs", "active"} {
		q := "of-" + what
		rdb.Set(t.Context(), space.Key(q, what), "x", 0)
		if _, err := Final(t.Context(), rdb, space, []string{q}); err == nil {
			t.Errorf("%s is a string, and nobody noticed", what)
		}
	}
}
