package cluster

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestStatesOfAMember(t *testing.T) {
	t.Parallel()
	now := time.Now()
	member := func(s State) Member {
		return Member{Name: "n-1", Node: "n", Meta: Meta{Session: "s"}, State: s, Since: now}
	}
	put := func(s State) func(*roster) { return func(r *roster) { r.put(member(s)) } }
	leave := func(r *roster) { r.leave("n-1", now) }
	for name, tt := range map[string]struct {
		steps []func(*roster)
		want  State
		dead  bool
	}{
		"nobody":                             {nil, "", false},
		"joined":                             {[]func(*roster){put(Alive)}, Alive, false},
		"given up":                           {[]func(*roster){put(Alive), put(Dead)}, Dead, true},
		"given up and back":                  {[]func(*roster){put(Alive), put(Dead), put(Alive)}, Alive, false},
		"left":                               {[]func(*roster){put(Alive), leave}, Left, false},
		"left, as memberlist then says":      {[]func(*roster){put(Alive), leave, put(Dead)}, Left, false},
		"left, and the notice came later":    {[]func(*roster){put(Alive), put(Dead), leave}, Left, false},
		"left, and an older word comes late": {[]func(*roster){put(Alive), leave, put(Alive)}, Left, false},
		"a stranger leaves":                  {[]func(*roster){leave}, "", false},
		"after the end nothing changes":      {[]func(*roster){put(Alive), (*roster).close, put(Dead), leave}, Alive, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoster()
			for _, step := range tt.steps {
				step(r)
			}
			if m, _ := r.get("n-1"); m.State != tt.want || r.dead("s") != tt.dead {
				t.Errorf("got %q, dead %v", m.State, r.dead("s"))
			}
		})
	}
}

func TestASessionIsNotDeadWhileAMemberHasIt(t *testing.T) {
	t.Parallel()
	r := newRoster()
	r.put(Member{Name: "a-1", State: Dead, Meta: Meta{Session: "s"}})
	r.put(Member{Name: "a-2", State: Alive, Meta: Meta{Session: "s"}})
	r.put(Member{Name: "b-1", State: Dead})
	if r.dead("s") || r.dead("") || r.dead("t") {
		t.Error("called dead")
	}
}

func TestTheRosterForgets(t *testing.T) {
	t.Parallel()
	r, now := newRoster(), time.Now()
	r.put(Member{Name: "old-alive", State: Alive, Since: now.Add(-100 * time.Hour)})
	r.put(Member{Name: "old-left", State: Left, Since: now.Add(-keepLeft - 1)})
	r.put(Member{Name: "new-left", State: Left, Since: now.Add(-time.Minute)})
	r.put(Member{Name: "old-dead", State: Dead, Since: now.Add(-keepDead - 1)})
	r.prune(now)
	if names := names(r); !slices.Equal(names, []string{"new-left", "old-alive"}) {
		t.Errorf("kept %v", names)
	}
	for i := range maxGone {
		r.put(Member{Name: strconv.Itoa(i), State: Dead, Since: now.Add(time.Duration(i) * time.Microsecond)})
	}
	r.prune(now.Add(time.Second))
	if _, ok := r.get("new-left"); ok || len(r.list()) != maxGone+1 {
		t.Errorf("%d kept, the oldest must go", len(r.list()))
	}
}

func names(r *roster) []string {
	var out []string
	for _, m := range r.list() {
		out = append(out, m.Name)
	}
	return out
}

func TestNodeOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"n1-abc": "n1", "my-host-abc": "my-host", "plain": "plain", "-x": "-x", "": ""} {
		if got := nodeOf(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
