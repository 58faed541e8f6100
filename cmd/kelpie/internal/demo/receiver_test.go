package demo

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serve runs a receiver until the test ends, and checks that it leaves its port.
func serve(t *testing.T) *receiver {
	t.Helper()
	r, err := openReceiver()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run = %v", err)
		}
		if l, err := net.Listen("tcp", r.addr()); err != nil {
			t.Errorf("the port is still taken: %v", err)
		} else {
			l.Close()
		}
	})
	return r
}

func deliver(t *testing.T, ctx context.Context, url, id, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Webhook-Id", id)
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return resp, err
}

func TestTheReceiverAnswersAsPlanned(t *testing.T) {
	t.Parallel()
	r := serve(t)
	busy := answer{status: http.StatusTooManyRequests, retryAfter: 1}
	first := r.expect(plan{answers: []answer{failed, busy}, then: taken})
	second := r.expect(plan{then: gone, delay: time.Second})
	for i, want := range []struct {
		number, status int
		retryAfter     string
	}{
		{first, 500, ""}, {first, 429, "1"}, {second, 410, ""}, {first, 200, ""}, {first, 200, ""}, {second, 410, ""},
	} {
		resp, err := deliver(t, t.Context(), r.url(want.number), "id", "{}")
		if err != nil || resp.StatusCode != want.status || resp.Header.Get("Retry-After") != want.retryAfter {
			t.Errorf("answer %d = %v, %v, want %d", i, resp, err, want.status)
		}
	}
	want := tally{arrivals: 6, taken: 1, refused: 1, faults: 2, done: 2, doneOnce: 1}
	if err := await(t.Context(), func() (bool, error) { return r.counts() == want, nil }); err != nil {
		t.Errorf("counts = %+v, want %+v", r.counts(), want)
	}
}

func TestTheReceiverKeepsWhatItSaw(t *testing.T) {
	t.Parallel()
	r := serve(t)
	n := r.expect(plan{then: taken})
	before := time.Now()
	if _, err := deliver(t, t.Context(), r.url(n), "job-1", "\x00 body"); err != nil {
		t.Fatal(err)
	}
	resp, err := deliver(t, t.Context(), "http://"+r.addr()+"/elsewhere", "job-2", "")
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a foreign address is answered with %v, %v, want 404", resp, err)
	}
	seen := r.seen()
	if len(seen) != 2 || seen[0].id != "job-1" || seen[0].number != n || seen[0].sum != sumOf([]byte("\x00 body")) || seen[0].at.Before(before) {
		t.Errorf("seen %+v", seen)
	}
	if seen[1].id != "job-2" || seen[1].number != -1 {
		t.Errorf("a foreign address is kept as %+v, want number -1", seen[1])
	}
	if r.missing([]string{"job-1", "job-3"}, before) != 1 || r.missing([]string{"job-1"}, time.Now()) != 1 {
		t.Error("missing counts wrong")
	}
	if err := await(t.Context(), func() (bool, error) { return r.unfinished([]string{"job-1", "job-3"}) == 1, nil }); err != nil {
		t.Error("unfinished counts wrong")
	}
}

func TestAClientThatDiesGotNoAnswer(t *testing.T) {
	t.Parallel()
	r := serve(t)
	n := r.expect(plan{answers: []answer{{status: 200, wait: time.Hour}}, then: taken})
	ctx, cancel := context.WithCancel(t.Context())
	died := make(chan error, 1)
	go func() {
		_, err := deliver(t, ctx, r.url(n), "a", "{}")
		died <- err
	}()
	if err := await(t.Context(), func() (bool, error) { return r.counts().arrivals == 1, nil }); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-died; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if resp, err := deliver(t, t.Context(), r.url(n), "a", "{}"); err != nil || resp.StatusCode != 200 {
		t.Fatalf("the second delivery = %v, %v", resp, err)
	}
	if err := await(t.Context(), func() (bool, error) { return r.counts().taken == 1, nil }); err != nil {
		t.Fatal(err)
	}
	if seen := r.seen(); len(seen) != 2 || seen[0].answered || !seen[1].answered {
		t.Errorf("seen %+v, want the first without an answer and the second with one", seen)
	}
}

func TestHalfAWebhookIsNoArrival(t *testing.T) {
	t.Parallel()
	r := serve(t)
	n := r.expect(plan{then: taken})
	c, err := net.Dial("tcp", r.addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "POST "+strings.TrimPrefix(r.url(n), "http://"+r.addr())+" HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := deliver(t, t.Context(), r.url(n), "a", "whole"); err != nil {
		t.Fatal(err)
	}
	if seen := r.seen(); len(seen) != 1 || seen[0].sum != sumOf([]byte("whole")) {
		t.Errorf("seen %+v, want the whole one only", seen)
	}
}

func TestTheMoodHasAllTreatments(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	counts := map[string]int{}
	const n = 10_000
	for range n {
		p := moodAt(25).plan(rng, letter{}, 0)
		switch a := p.answer(0); {
		case p.refused():
			counts["refused"]++
		case a.wait >= slow:
			counts["slow"]++
		case a.willing():
			counts["quick"]++
		case a.retryAfter > 0:
			counts["busy"]++
		case !p.answer(1).willing():
			counts["twice"]++
		default:
			counts["once"]++
		}
		if last := p.answer(20); !last.willing() && !last.final() {
			t.Fatalf("the plan %+v never ends", p)
		}
	}
	for what, share := range map[string]float64{"refused": 0.04, "slow": 0.28, "quick": 0.52, "busy": 0.06, "once": 0.08, "twice": 0.02} {
		if got := float64(counts[what]) / n; got < share*0.8 || got > share*1.2 {
			t.Errorf("%s: %.3f of all, want about %.2f", what, got, share)
		}
	}
}
