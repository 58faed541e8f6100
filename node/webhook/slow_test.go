package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stall accepts connections. With something to say it says that after the first
// bytes of a request; it reads nothing more.
func stall(t *testing.T, say string) listener {
	t.Helper()
	l := listen(t, "127.0.0.1:0")
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			if say != "" {
				_, _ = conn.Read(make([]byte, 1000))
				_, _ = io.WriteString(conn, say)
			}
		}
	}()
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l
}

// blackhole is an address at which nobody completes a handshake: the line in
// front of the listener is short and full. A dial that gets no answer once may
// only have met a busy machine; three in a row have met the line's end.
func blackhole(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	at := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}).String()
	for unanswered := 0; unanswered < 3; {
		conn, err := net.DialTimeout("tcp", at, 50*time.Millisecond)
		if err != nil {
			unanswered++
			continue
		}
		unanswered = 0
		if t.Cleanup(func() { conn.Close() }); time.Since(begun) > 20*time.Second {
			t.Fatal("the line never filled up")
		}
	}
	return at
}

func TestC163SlowReceiverIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	silent := "http://" + stall(t, "").Addr().String()
	short := Options{ConnectTimeout: 150 * time.Millisecond, TLSTimeout: 150 * time.Millisecond}
	for name, tt := range map[string]struct {
		o    Options
		r    Request
		want string
	}{
		"accepts and says nothing":     {Options{}, Request{URL: silent, TimeoutMS: 150}, "timed out after 150ms while waiting for the answer"},
		"a header that does not end":   {Options{}, Request{URL: "http://" + stall(t, "HTTP/1.1 200 OK\r\nX").Addr().String(), TimeoutMS: 150}, "while reading the answer"},
		"header time-out of the node":  {Options{HeaderTimeout: 150 * time.Millisecond}, Request{URL: silent}, "timeout awaiting response headers"},
		"never shakes hands":           {short, Request{URL: strings.Replace(silent, "http", "https", 1)}, "TLS handshake timeout"},
		"never shakes hands, all time": {Options{}, Request{URL: strings.Replace(silent, "http", "https", 1), TimeoutMS: 150}, "while shaking hands over TLS"},
		"does not read the body":       {Options{}, Request{URL: silent, BodyText: strings.Repeat("x", 10<<20), TimeoutMS: 150}, "while sending the request"},
		"a black hole":                 {short, Request{URL: "http://" + blackhole(t)}, "i/o timeout"},
		"a black hole, all time":       {Options{}, Request{URL: "http://" + blackhole(t), TimeoutMS: 150}, "while connecting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := handler(t, tt.o)
			h.slowAfter = 0
			begun := time.Now()
			v := try(t, h, tt.r)
			if took := time.Since(begun); took > 150*time.Millisecond+time.Second {
				t.Errorf("took %v", took)
			}
			if v.fate != again || !strings.Contains(v.err.Error(), tt.want) {
				t.Errorf("fate %v, %v; want %q", v.fate, v.err, tt.want)
			}
			if len(h.hosts.known) != 1 {
				t.Error("it did not count as a time-out")
			}
		})
	}
}

func TestC163SilentNameServerIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	nobody, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	// The standard library goes on asking for 5 s when nobody wants to know any
	// more; here that ends with the test.
	over, end := context.WithCancel(context.Background())
	defer end()
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(over, "udp", nobody.LocalAddr().String())
		if err == nil {
			context.AfterFunc(over, func() { conn.Close() })
		}
		return conn, err
	}}
	v := try(t, handler(t, Options{Resolver: resolver}), Request{URL: "http://slow.test/", TimeoutMS: 150})
	if v.fate != again || !strings.Contains(v.err.Error(), "while looking up the host") {
		t.Errorf("fate %v, %v", v.fate, v.err)
	}
}

func TestC163BodyOfTheAnswerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]verdict{200: {fate: delivered}, 500: {fate: again}} {
		r := receive(t, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "half of a rea")
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
		})
		h := handler(t, Options{})
		h.bodyTimeout = 50 * time.Millisecond
		v := try(t, h, Request{URL: r.URL})
		if v.fate != want.fate || v.err != nil && !strings.HasSuffix(v.err.Error(), ": half of a rea") {
			t.Errorf("%d: fate %v, %v", code, v.fate, v.err)
		}
	}
}

// 100 deliveries to a receiver that swallows them and 100 to a fast one go
// through ten slots, the slow ones first. A job that was put off goes to the end
// of the line.
func TestC163FastReceiverIsNotHeldUpByASlowOne(t *testing.T) {
	t.Parallel()
	slow := Request{URL: "http://" + stall(t, "").Addr().String(), TimeoutMS: 300}
	fast := receive(t, ok)
	h := handler(t, Options{})
	h.slowAfter = 0
	line := make(chan Request, 1000)
	for range 100 {
		line <- slow
	}
	for range 100 {
		line <- Request{URL: fast.URL}
	}
	ctx, finish := context.WithCancel(t.Context())
	defer finish()
	var mu sync.Mutex
	sent, done := 0, 0
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for ctx.Err() == nil {
				r := <-line
				v := h.attempt(ctx, "job", r)
				mu.Lock()
				switch {
				case v.fate != delivered:
					line <- r
					if v.fate == again {
						sent++
					}
				case done == 99:
					finish()
					fallthrough
				default:
					done++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if done < 100 || sent > 12 { // the first ten, and what one slot did meanwhile
		t.Errorf("%d fast ones were delivered while %d slow ones were waited for", done, sent)
	}
}
