package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Nothing listens there: whoever used a proxy would fail everywhere.
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		os.Setenv(name, "http://127.0.0.1:1")
	}
	goleak.VerifyTestMain(m)
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// handler returns a Handler that may deliver to this machine unless o says
// otherwise.
func handler(t testing.TB, o Options) *Handler {
	t.Helper()
	if o.Allow == nil {
		o.Allow = loopback
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// strict returns a Handler without allowed networks.
func strict(t testing.TB, o Options) *Handler {
	o.Allow = []netip.Prefix{}
	return handler(t, o)
}

// seen is a request as a receiver got it.
type seen struct {
	method, uri, host string
	header            http.Header
	body              []byte
	length            int64
	chunked           bool
}

// receiver is an HTTP server that remembers its requests.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []seen
}

func receive(t testing.TB, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(r.record(answer))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) record(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, seen{req.Method, req.RequestURI, req.Host, req.Header.Clone(), body, req.ContentLength, len(req.TransferEncoding) > 0})
		r.mu.Unlock()
		answer(w, req)
	}
}

func (r *receiver) requests() []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]seen(nil), r.got...)
}

// only returns the single request that arrived.
func (r *receiver) only(t testing.TB) seen {
	t.Helper()
	got := r.requests()
	if len(got) != 1 {
		t.Fatalf("%d requests arrived, want 1", len(got))
	}
	return got[0]
}

func ok(http.ResponseWriter, *http.Request) {}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// listener accepts connections on an address; untouched proves that there was none.
type listener struct{ net.Listener }

func listen(t testing.TB, addr string) listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return listener{l}
}

func (l listener) port() string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// untouched connects and finds itself first in the line.
func (l listener) untouched(t testing.TB) {
	t.Helper()
	mine, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if first.RemoteAddr().String() != mine.LocalAddr().String() {
		t.Errorf("somebody connected to %v", l.Addr())
	}
}

// try makes one attempt that must be over soon.
func try(t testing.TB, h *Handler, r Request) verdict {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return h.attempt(ctx, "job-1", r)
}
