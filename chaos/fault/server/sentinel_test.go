package server

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestFailoversByOneClient(t *testing.T) {
	t.Parallel()
	s, err := StartSentinel(t.Context(), openKennel(t), Options{Program: program(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if n := strings.Count(s.URL(), ","); !strings.HasPrefix(s.URL(), "redis+sentinel://127.0.0.1:") || n != 2 || !strings.HasSuffix(s.URL(), "/mymaster") {
		t.Errorf("URL %q", s.URL())
	}
	rdb := connect(t, s.URL())
	for i := range 2 {
		master, err := s.Master(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := rdb.Incr(t.Context(), "n").Err(); err != nil {
			t.Fatal(err)
		}
		kept(t, rdb)
		if err := s.Failover(t.Context()); err != nil {
			t.Fatal(err)
		}
		next, err := s.Master(t.Context())
		if err != nil || next == master {
			t.Fatalf("the master is %v after %v, %v", next.Addr(), master.Addr(), err)
		}
		eventually(t, "the client to follow", func() bool { return rdb.Set(t.Context(), "here", i, 0).Err() == nil })
		if got := rdb.Get(t.Context(), "n").Val(); got != string(rune('1'+i)) {
			t.Errorf("n is %q after failover %d", got, i+1)
		}
		roles := map[string]int{}
		for _, r := range s.Servers() {
			f, err := r.replication(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			roles[f["role"]]++
		}
		if roles["master"] != 1 || roles["slave"] != 2 {
			t.Errorf("roles %v", roles)
		}
	}
}

// kept waits until both replicas have what this client wrote.
func kept(t *testing.T, rdb *redis.Client) {
	t.Helper()
	eventually(t, "both replicas", func() bool {
		c := rdb.Conn()
		defer c.Close()
		if err := c.Set(t.Context(), "mark", 1, 0).Err(); err != nil {
			return false
		}
		n, err := c.Wait(t.Context(), 2, 0).Result()
		return err == nil && n == 2
	})
}
