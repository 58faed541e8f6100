package chaos

import (
	"testing"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

func TestSomebodysOwnRedisGetsProxiesWhereTheyUnderstandIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		address  string
		upstream string
		through  string
	}{
		"a plain server":                 {"redis://u:secret@10.0.0.5:6380/3", "10.0.0.5:6380", "redis://u:secret@127.0.0.1:7/3"},
		"TLS is not understood":          {"rediss://10.0.0.5:6380", "", ""},
		"a socket is no place of TCP":    {"unix:///run/redis.sock", "", ""},
		"the Sentinels change the place": {"redis+sentinel://10.0.0.5:26379/mymaster", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, err := foreignStore(tt.address)
			if err != nil || st.upstream != tt.upstream || st.url != tt.address {
				t.Fatalf("store %+v, error %v", st, err)
			}
			if st.redis != nil || st.failover != nil {
				t.Error("it can be struck")
			}
			if tt.through != "" && st.through("127.0.0.1:7") != tt.through {
				t.Errorf("through a proxy it is %s, want %s", st.through("127.0.0.1:7"), tt.through)
			}
		})
	}
}

func TestWhatARedisKeepsIsSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		store  store
		server queue.Server
		want   string
	}{
		"a server of the run":                   {store{fsync: "always"}, queue.Server{}, "appendfsync always"},
		"somebody's, with an AOF":               {store{}, queue.Server{AOF: true, Fsync: "everysec"}, "appendfsync everysec"},
		"somebody's, without one":               {store{}, queue.Server{Fsync: "everysec"}, "no append-only file"},
		"one that does not let itself be asked": {store{}, queue.Server{AOF: true}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.store.durable(tt.server); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestStrikesAreToldInASentence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		strike history.Strike
		want   string
	}{
		{history.Strike{Phase: history.Begin, N: 3, Kind: "kill"}, ""},
		{history.Strike{Phase: history.Hit, N: 3, Kind: "kill", Target: "n2", Sweeper: true, Held: []string{"q/a", "q/b"}},
			"fault 3: kill n2, the sweeper, which held 2 jobs"},
		{history.Strike{Phase: history.Skip, N: 3, Kind: "kill", Note: "nobody holds jobs"}, "fault 3: kill skipped: nobody holds jobs"},
		{history.Strike{Phase: history.Health, N: 3, Kind: "kill", OK: true}, ""},
		{history.Strike{Phase: history.Health, N: 3, Kind: "kill", Note: "n1 does not beat"}, "fault 3: kill: not well: n1 does not beat"},
	} {
		if got := strikeText(tt.strike); got != tt.want {
			t.Errorf("%+v is told as %q, want %q", tt.strike, got, tt.want)
		}
	}
}

func TestTheStateFollowsTheFaults(t *testing.T) {
	t.Parallel()
	var said []string
	r := &run{Options: Options{Tell: func(s string) { said = append(said, s) }}}
	for _, s := range []history.Strike{
		{Phase: history.Begin, N: 1, Kind: "kill"}, {Phase: history.Hit, N: 1, Kind: "kill", Target: "n1"},
		{Phase: history.Begin, N: 2, Kind: "slow"}, {Phase: history.End, N: 1, Kind: "kill"},
	} {
		r.struck(s)
	}
	if r.state.Struck != 2 || len(r.state.Now) != 1 || r.state.Now[0] != "slow" || len(said) != 1 {
		t.Errorf("state %+v, said %q", r.state, said)
	}
}
