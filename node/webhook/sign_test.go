package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// verify is what a receiver does: it knows one secret, the headers and the raw
// body, and nothing of this package.
func verify(secret string, got seen, now time.Time) error {
	sec, err := strconv.ParseInt(got.header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		return err
	}
	if age := now.Unix() - sec; age > 300 || age < -300 {
		return fmt.Errorf("a time stamp %d s old looks like a replay", age)
	}
	key, err := base64.StdEncoding.DecodeString(secret[len("whsec_"):])
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", got.header.Get("webhook-id"), got.header.Get("webhook-timestamp"), got.body)
	want := mac.Sum(nil)
	for _, signature := range strings.Split(got.header.Get("webhook-signature"), " ") {
		version, text, _ := strings.Cut(signature, ",")
		if sum, err := base64.StdEncoding.DecodeString(text); err == nil && version == "v1" && subtle.ConstantTimeCompare(sum, want) == 1 {
			return nil
		}
	}
	return fmt.Errorf("no signature of %q fits", got.header.Get("webhook-signature"))
}

func TestSignatureIsTheOneOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	s, err := newSigner([]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	if err != nil {
		t.Fatal(err)
	}
	got := s.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func secretOf(b string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(b, 32)))
}

func TestC164EveryAttemptIsSignedAnew(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64 // seconds
	clock.Store(noon.Unix())
	var calls atomic.Int32
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) <= 5 {
			w.WriteHeader(503)
		}
	})
	before, after := secretOf("a"), secretOf("b")
	in := Request{URL: r.URL, Body: []byte("{ \"name\": \"Zoë <日本> \\u00e9\" }")}
	for i, secrets := range [][]string{{before}, {before}, {after, before}, {after, before}, {after}, {after}} { // rotated in between
		h := handler(t, Options{Secrets: secrets})
		h.now = func() time.Time { return time.Unix(clock.Load(), 0) }
		v := try(t, h, in)
		if want := map[bool]fate{true: again, false: delivered}[i < 5]; v.fate != want {
			t.Fatalf("attempt %d: fate %v, %v", i+1, v.fate, v.err)
		}
		got := r.requests()[i]
		for _, secret := range secrets {
			if err := verify(secret, got, time.Unix(clock.Load(), 0)); err != nil {
				t.Errorf("attempt %d: %v", i+1, err)
			}
		}
		if got.header.Get("webhook-id") != "job-1" || string(got.body) != string(in.Body) {
			t.Errorf("attempt %d: another id or body: %+v", i+1, got)
		}
		if err := verify(secretOf("c"), got, time.Unix(clock.Load(), 0)); err == nil {
			t.Error("the verifier accepts anything")
		}
		clock.Add(240) // 20 min over all
	}
	if err := verify(before, r.requests()[0], time.Unix(clock.Load(), 0)); err == nil {
		t.Error("the verifier accepts a replay")
	}
}

func TestSignedIDMustNotContainAFullStop(t *testing.T) {
	t.Parallel()
	r := receive(t, ok)
	h := handler(t, Options{Secrets: []string{secretOf("a")}})
	if v := h.attempt(t.Context(), "order.17", Request{URL: r.URL}); v.fate != hopeless || !strings.Contains(v.err.Error(), "full stop") {
		t.Errorf("fate %v, %v", v.fate, v.err)
	}
	if v := handler(t, Options{}).attempt(t.Context(), "order.17", Request{URL: r.URL}); v.fate != delivered {
		t.Errorf("unsigned: fate %v, %v", v.fate, v.err)
	}
}
