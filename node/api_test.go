package node

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

func get(t *testing.T, n *started, path string) (code int, body string) {
	t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + n.httpAddr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

func TestHealthTellsTheTruth(t *testing.T) {
	t.Parallel()
	h, server := ownHerd(t, redistest.WithAOF("always"))
	c := h.config("n1")
	c.HTTP, c.DrainTimeout = "127.0.0.1:0", patience
	n := h.startWorking(c)
	eventually(t, patience, "the node is registered", func() bool { return len(h.nodes()) == 1 })
	ready := func() (int, string) {
		code, body := get(t, n, "/readyz")
		var answer struct{ Status, Reason string }
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		return code, answer.Reason
	}
	if code, reason := ready(); code != 200 {
		t.Errorf("/readyz: %d %s, want 200", code, reason)
	}
	server.Kill()
	eventually(t, patience, "not ready without Redis", func() bool { code, reason := ready(); return code == 503 && strings.Contains(reason, "Redis") })
	if code, body := get(t, n, "/livez"); code != 200 || !strings.Contains(body, `"ok"`) {
		t.Errorf("/livez without Redis: %d %s, want 200: a restart mends nothing", code, body)
	}
	if code, body := get(t, n, "/metrics"); code != 200 || !strings.Contains(body, "kelpie_redis_up 0") {
		t.Errorf("/metrics without Redis: %d, want 200 and kelpie_redis_up 0", code)
	}
	server.Restart()
	eventually(t, patience, "ready again", func() bool { code, _ := ready(); return code == 200 })
	h.do(work{Sleep: 2 * time.Second})
	eventually(t, patience, "it runs", func() bool { return len(h.ledger.of("start", "", "")) == 1 })
	ended := make(chan error, 1)
	go func() { ended <- n.stop() }()
	eventually(t, patience, "not ready while it drains", func() bool { code, reason := ready(); return code == 503 && reason == "draining" })
	if code, _ := get(t, n, "/livez"); code != 200 {
		t.Errorf("/livez while it drains: %d, want 200", code)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestHealthIsThereBeforeRedis(t *testing.T) {
	t.Parallel()
	h, server := ownHerd(t)
	server.Kill()
	c := h.config("n1")
	c.HTTP = "127.0.0.1:0"
	said := make(chan string, 10)
	c.Log = zerolog.New(io.Discard).Hook(hook(func(msg string) {
		if msg == "http listens" {
			said <- msg
		}
	}))
	n := h.startWorking(c)
	select {
	case <-said:
	case <-time.After(patience):
		t.Fatal("http does not listen")
	}
	if code, body := get(t, n, "/readyz"); code != 503 || !strings.Contains(body, "not registered") {
		t.Errorf("/readyz before Redis: %d %s, want 503 and why", code, body)
	}
	if code, body := get(t, n, "/metrics"); code != 200 || !strings.Contains(body, "kelpie_redis_up 0") {
		t.Errorf("/metrics before Redis: %d, want 200 and kelpie_redis_up 0", code)
	}
}

func TestMetricsCountAndTheirLabelsAreBounded(t *testing.T) {
	t.Parallel()
	h := realHerd(t)
	c := h.config("n1")
	c.HTTP = "127.0.0.1:0"
	n := h.startWorking(c)
	h.doMany(3, work{})
	h.do(work{Fail: 100})
	for i := range 30 {
		h.enqueue("unknown-"+strings.Repeat("x", i), "")
	}
	eventually(t, patience, "all were looked at", func() bool {
		q := h.queue("default")
		return q.Totals.Completed == 3 && q.Totals.Failed >= 1 && n.counted(t, "kelpie_unserved_total") >= 30
	})
	var body string
	eventually(t, patience, "the settlements are counted", func() bool {
		_, body = get(t, n, "/metrics")
		return strings.Contains(body, `kelpie_attempts_total{kind="work",outcome="completed",queue="default"} 3`)
	})
	for _, want := range []string{
		`kelpie_attempts_total{kind="work",outcome="retried",queue="default"}`, `kelpie_queue_jobs{queue="default",state="dead"} 0`,
		`kelpie_queue_jobs_total{move="enqueued",queue="default"} 34`, `kelpie_wait_seconds_count{kind="work",queue="default"}`,
		`kelpie_run_seconds_bucket{kind="work",queue="default",le="0.001"}`, "kelpie_workers 10", "kelpie_sweeper 1", "kelpie_redis_up 1", "kelpie_gossip_members 1",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	for _, m := range regexp.MustCompile(`kind="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		if m[1] != "work" && m[1] != "other" {
			t.Errorf("/metrics has the kind %q: anybody who enqueues could add series", m[1])
		}
	}
}
