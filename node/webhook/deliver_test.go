package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kelpiehq/kelpie/queue"
)

func TestRequestAsTheReceiverGetsIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rest             string // of the payload, after the url
		method, mime, ua string
		body             string
	}{
		"JSON is sent as it stands":  {`,"body":` + spaced, "POST", "application/json", "kelpie/1.2", spaced},
		"null is a body":             {`,"body":null`, "POST", "application/json", "kelpie/1.2", "null"},
		"text":                       {`,"body_text":"grüß <b>\u0000"`, "POST", "text/plain; charset=utf-8", "kelpie/1.2", "grüß <b>\x00"},
		"bytes":                      {`,"body_base64":"AP/+"`, "POST", "application/octet-stream", "kelpie/1.2", "\x00\xff\xfe"},
		"another method":             {`,"method":"DELETE"`, "DELETE", "", "kelpie/1.2", ""},
		"headers of the payload win": {`,"headers":{"content-type":"application/x-thing","user-agent":"mine"},"body":{}`, "POST", "application/x-thing", "mine", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, ok)
			h := handler(t, Options{Version: "1.2"})
			payload := []byte(`{"url":"` + r.URL + `/a%2Fb?c=d"` + tt.rest + `}`)
			in, err := Kind.Decode(payload)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Deliver(t.Context(), &queue.Job[Request]{Info: queue.Info{ID: "job-7", Payload: payload}, In: in}); err != nil {
				t.Fatal(err)
			}
			got := r.only(t)
			if got.method != tt.method || got.uri != "/a%2Fb?c=d" || string(got.body) != tt.body || got.length != int64(len(tt.body)) || got.chunked {
				t.Errorf("got %+v", got)
			}
			if h := got.header; h.Get("Content-Type") != tt.mime || h.Get("User-Agent") != tt.ua || h.Get(headerID) != "job-7" || h.Get(headerTime) == "" || h.Get("Accept-Encoding") != "" {
				t.Errorf("got headers %v", h)
			}
			if _, signed := got.header[headerSig]; signed {
				t.Error("signed without a secret")
			}
		})
	}
}

func TestC083EmptyBodiesArriveAsDocumented(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string]string{
		``: "", `,"body_text":""`: "", `,"body_base64":""`: "",
		`,"body":""`: `""`, `,"body":null`: "null", `,"body":{}`: "{}", `,"body":0`: "0", `,"body":false`: "false",
	} {
		r := receive(t, ok)
		in, err := Kind.Decode([]byte(`{"url":"` + r.URL + `"` + rest + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if v := try(t, handler(t, Options{}), in); v.fate != delivered {
			t.Fatal(v.err)
		}
		if got := r.only(t); string(got.body) != want || got.length != int64(len(want)) {
			t.Errorf("%s: body %q of length %d, want %q", rest, got.body, got.length, want)
		}
	}
	for _, payload := range []string{"", `""`, "null", "{}", "0", "false"} { // no request at all: refused, with a reason
		in, err := Kind.Decode([]byte(payload))
		if err == nil {
			err = try(t, handler(t, Options{}), in).err
		}
		if err == nil {
			t.Errorf("%q was accepted", payload)
		}
	}
}

func TestC082AnyBytesArriveUnaltered(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for name, body := range map[string][]byte{
		"every byte":        all,
		"1 MB of 0xFF":      bytes.Repeat([]byte{0xFF}, 1<<20),
		"a byte order mark": []byte("\ufeff{}"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, ok)
			payload, err := Request{URL: r.URL, BodyBase64: body}.Payload()
			if err != nil {
				t.Fatal(err)
			}
			in, err := Kind.Decode(payload)
			if err != nil {
				t.Fatal(err)
			}
			if v := try(t, handler(t, Options{}), in); v.fate != delivered || !bytes.Equal(r.only(t).body, body) {
				t.Errorf("%v: altered", v.err)
			}
		})
	}
}

func TestStatusDecides(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]fate{
		200: delivered, 201: delivered, 202: delivered, 204: delivered, 299: delivered,
		300: hopeless, 301: hopeless, 304: hopeless, 308: hopeless,
		400: hopeless, 401: hopeless, 403: hopeless, 404: hopeless, 409: hopeless, 410: hopeless, 413: hopeless, 418: hopeless, 422: hopeless, 451: hopeless,
		408: again, 425: again, 429: again,
		500: again, 501: again, 502: again, 503: again, 504: again, 599: again, 600: again, 999: again,
	} {
		r := receive(t, status(code))
		v := try(t, handler(t, Options{}), Request{URL: r.URL})
		if v.fate != want {
			t.Errorf("%d: fate %v, want %v: %v", code, v.fate, want, v.err)
		}
		if want != delivered && !strings.HasPrefix(v.err.Error(), fmt.Sprintf("answer %d", code)) {
			t.Errorf("%d: the reason is %q", code, v.err)
		}
		r.only(t)
	}
}

func TestFailureKeepsStatusAndBeginning(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, want string }{
		"no body":            {"", "answer 500 Internal Server Error"},
		"a short one":        {" no such\ntable\n", "answer 500 Internal Server Error: no such\ntable"},
		"control characters": {"a\x00b\x1b[31mc\u0085", "answer 500 Internal Server Error: a\ufffdb\ufffd[31mc\ufffd"},
		"no UTF-8":           {"gr\xfc\xdf", "answer 500 Internal Server Error: gr\ufffd"},
		"cut in the middle":  {strings.Repeat("é", 600), "answer 500 Internal Server Error: " + strings.Repeat("é", 512) + " ... (cut at 1 KB)"},
		"exactly 1 KB":       {strings.Repeat("x", 1024), "answer 500 Internal Server Error: " + strings.Repeat("x", 1024)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(500)
				io.WriteString(w, tt.body)
			})
			if v := try(t, handler(t, Options{}), Request{URL: r.URL}); v.err.Error() != tt.want {
				t.Errorf("%q\nwant %q", v.err, tt.want)
			}
		})
	}
}

func TestC094EndlessErrorPageIsCut(t *testing.T) {
	t.Parallel()
	page := bytes.Repeat([]byte("<p>\xff\x00\n"), 10_000)
	sent := make(chan int, 1)
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		total := 0
		for total < 100<<20 {
			n, err := w.Write(page)
			if total += n; err != nil {
				break
			}
		}
		sent <- total
	})
	v := try(t, handler(t, Options{}), Request{URL: r.URL})
	if text := v.err.Error(); v.fate != again || len(text) > 2<<10 || !utf8.ValidString(text) || !strings.HasSuffix(text, "(cut at 1 KB)") {
		t.Errorf("fate %v, %d bytes: %.100q", v.fate, len(text), text)
	}
	if n := <-sent; n >= 100<<20 {
		t.Errorf("all of its %d bytes were read", n)
	}
}

func TestNoAnswerIsTriedAgain(t *testing.T) {
	t.Parallel()
	closed := listen(t, "127.0.0.1:0")
	closed.Close()
	hangUp := receive(t, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	half := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nServer: x\r\n")
		conn.Close()
	})
	other := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		io.WriteString(conn, "-ERR unknown command 'POST'\r\n")
		conn.Close()
	})
	flood := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 1<<20))
	})
	for name, tt := range map[string]struct{ url, want string }{
		"nobody listens":       {"http://" + closed.Addr().String(), "refused"},
		"hung up":              {hangUp.URL, "while"},
		"half an answer":       {half.URL, "EOF"},
		"not HTTP":             {other.URL, "malformed HTTP"},
		"a header without end": {flood.URL, "exceed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := try(t, handler(t, Options{}), Request{URL: tt.url})
			if v.fate != again || !strings.Contains(v.err.Error(), tt.want) {
				t.Errorf("fate %v, %v; want again, %q", v.fate, v.err, tt.want)
			}
		})
	}
}

func TestReasonDoesNotRepeatTheURL(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	l.Close()
	v := try(t, handler(t, Options{}), Request{URL: "http://" + l.Addr().String() + "/?token=geheim"})
	if v.err == nil || strings.Contains(v.err.Error(), "geheim") {
		t.Errorf("%v", v.err)
	}
}

func TestNodeThatStopsADeliveryIsNotTheReceiversFault(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{queue.ErrShutdown, queue.ErrSessionLost, queue.ErrCancelled, queue.ErrTimeout} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := receive(t, func(_ http.ResponseWriter, req *http.Request) {
			cancel(cause)
			<-req.Context().Done()
		})
		h := handler(t, Options{})
		err := h.Deliver(ctx, &queue.Job[Request]{In: Request{URL: r.URL}})
		if !errors.Is(err, cause) {
			t.Errorf("%v: got %v", cause, err)
		}
		if len(h.hosts.known) != 0 {
			t.Error("the host is remembered as slow")
		}
	}
}

func TestVerdictInTheWordsOfQueue(t *testing.T) {
	t.Parallel()
	cause := errors.New("why")
	if err := (verdict{fate: delivered}).outcome(); err != nil {
		t.Error(err)
	}
	for _, v := range []verdict{{again, 0, cause}, {again, 5, cause}, {hopeless, 0, cause}, {cutShort, 0, cause}} {
		if err := v.outcome(); !errors.Is(err, cause) || err.Error() != "why" {
			t.Errorf("%+v: %v", v, err)
		}
	}
	if err := (verdict{again, 0, cause}).outcome(); err != cause {
		t.Error("a plain failure must stay plain")
	}
	if err := (verdict{putOff, 5e9, nil}).outcome(); err == nil || !strings.Contains(err.Error(), "5s") {
		t.Error(err)
	}
}

func TestOptionsAreCheckedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Options{ConnectTimeout: -1, PerHost: -1, Version: "a b", Secrets: []string{"whsec_geheim", "whsec_AAAA"}})
	for _, want := range []string{"connect timeout", "per host -1", `version "a b"`, "webhook secret 1: must be whsec_", "webhook secret 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "geheim") {
		t.Error("a secret is repeated")
	}
}
