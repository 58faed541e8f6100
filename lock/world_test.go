package lock

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/rs/zerolog"
)

const testKey = "kelpie:{cluster}:sweeper"

// world is a Redis in virtual time with some peers around it. It lives in a
// bubble, where every duration is exact.
type world struct {
	t       *testing.T
	redis   *miniredis.Miniredis
	start   time.Time
	holders atomic.Int32 // duties whose context is alive
}

// inWorld runs a test in a bubble.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		t.Cleanup(m.Close)
		test(t, &world{t: t, redis: m, start: time.Now()})
	})
}

// pass lets virtual time go by, and what follows from it happen.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *world) now() time.Duration { return time.Since(w.start) }

// value is what stands in the key, "" if nothing does.
func (w *world) value() string {
	v, err := w.redis.Get(testKey)
	if err != nil && !errors.Is(err, miniredis.ErrKeyNotFound) {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) client() *redis.Client {
	rdb := redis.NewClient(&redis.Options{
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return w.redis.Dial() },
		MaxRetries:            -1,
		ContextTimeoutEnabled: true,
		Protocol:              2,
		DisableIdentity:       true,
		// its handshake looks up the name of the server, outside the bubble
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	w.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// peer is one process: a Lock, its line to Redis, its log and its tenures.
type peer struct {
	*Lock
	w       *world
	line    *line
	log     *logbook
	tenures chan *tenure
	cancel  context.CancelFunc
	done    chan struct{}
}

// tenure is what the duty of a peer was given, and when.
type tenure struct {
	*Tenure
	ctx   context.Context
	began time.Duration
	ended time.Duration // when ctx ended; read after done
	done  chan struct{} // closed when ctx has ended
}

// peer makes one that does not run yet.
func (w *world) peer(session string, tune ...func(*Options)) *peer {
	w.t.Helper()
	p := &peer{w: w, line: &line{Scripter: w.client()}, log: &logbook{}, tenures: make(chan *tenure, 1000), done: make(chan struct{})}
	o := Options{Key: testKey, Session: session, Log: zerolog.New(p.log)}
	for _, f := range tune {
		f(&o)
	}
	var err error
	if p.Lock, err = New(p.line, o); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// run starts the peer with a duty that holds on until its context ends, and
// checks that no two peers of the world do so at the same time.
func (p *peer) run() *peer { return p.runDuty(p.hold) }

func (p *peer) runDuty(duty Duty) *peer {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		if err := p.Run(ctx, duty); err != nil {
			p.w.t.Errorf("Run: %v", err)
		}
	}()
	p.w.t.Cleanup(p.stop)
	synctest.Wait()
	return p
}

func (p *peer) hold(ctx context.Context, t *Tenure) error {
	if n := p.w.holders.Add(1); n > 1 {
		p.w.t.Errorf("at %v there are %d holders", p.w.now(), n)
	}
	one := &tenure{Tenure: t, ctx: ctx, began: p.w.now(), done: make(chan struct{})}
	p.tenures <- one
	<-ctx.Done()
	p.w.holders.Add(-1)
	one.ended = p.w.now()
	close(one.done)
	return ctx.Err()
}

func (p *peer) stop() {
	p.cancel()
	<-p.done
}

// next waits for the next tenure of the peer.
func (p *peer) next() *tenure {
	p.w.t.Helper()
	select {
	case t := <-p.tenures:
		return t
	case <-time.After(time.Hour):
		p.w.t.Fatal("no tenure within an hour")
		return nil
	}
}

// over waits for the end of a tenure and returns when it came and why.
func (one *tenure) over(t *testing.T) (time.Duration, error) {
	t.Helper()
	select {
	case <-one.done:
		return one.ended, context.Cause(one.ctx)
	case <-time.After(time.Hour):
		t.Fatal("the tenure did not end within an hour")
		return 0, nil
	}
}

// line stands between a Lock and Redis, counts the calls, and breaks on demand.
type line struct {
	redis.Scripter
	state atomic.Int32
	lag   atomic.Int64 // ns, between what Redis does and its answer
	calls atomic.Int64
}

const (
	lineUp      = iota
	lineRefused // an error at once: nobody listens
	lineSilent  // no answer: the network swallows everything
	lineDeaf    // Redis acts, the answer is lost
)

var errRefused = errors.New("connection refused")

func (l *line) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	l.calls.Add(1)
	return l.through(ctx, func() *redis.Cmd { return l.Scripter.EvalSha(ctx, sha, keys, args...) })
}

func (l *line) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return l.through(ctx, func() *redis.Cmd { return l.Scripter.Eval(ctx, script, keys, args...) })
}

func (l *line) through(ctx context.Context, call func() *redis.Cmd) *redis.Cmd {
	failed := redis.NewCmd(ctx)
	switch l.state.Load() {
	case lineRefused:
		failed.SetErr(errRefused)
		return failed
	case lineDeaf:
		if cmd := call(); cmd.Err() != nil && redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			return cmd
		}
		fallthrough
	case lineSilent:
		<-ctx.Done()
		failed.SetErr(ctx.Err())
		return failed
	}
	cmd := call()
	if lag := time.Duration(l.lag.Load()); lag > 0 {
		select {
		case <-time.After(lag):
		case <-ctx.Done():
			failed.SetErr(ctx.Err())
			return failed
		}
	}
	return cmd
}

// logbook keeps log lines.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logbook) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.buf.String()), "\n")
}

// count is the number of lines that contain all of the words.
func (b *logbook) count(words ...string) (n int) {
next:
	for _, line := range b.lines() {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		n++
	}
	return n
}
