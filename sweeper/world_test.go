package sweeper

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"fmt"
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

	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/lock"
	"github.com/kelpiehq/kelpie/queue"
)

// world is a job space with some nodes in it.
type world struct {
	t      *testing.T
	ctx    context.Context
	prefix string
	dial   func() *redis.Client // closed with the test
	rdb    *redis.Client
	client *queue.Client // of somebody who enqueues and looks
	redis  *miniredis.Miniredis
}

// inBubble runs a test on a Redis in virtual time, where every duration is exact.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		t.Cleanup(m.Close)
		w := newWorld(t, "kelpie", func() *redis.Client {
			rdb := redis.NewClient(&redis.Options{
				Dialer:                   func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
				MaxRetries:               -1,
				PipelinePoolSize:         -1,
				ContextTimeoutEnabled:    true,
				Protocol:                 2,
				DisableIdentity:          true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() { _ = rdb.Close() })
			return rdb
		})
		w.redis = m
		test(t, w)
	})
}

// onRedis makes a world on the real server that the tests share.
func onRedis(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorld(t, redistest.Prefix(t), func() *redis.Client { return redistest.Client(t) })
}

func newWorld(t *testing.T, prefix string, dial func() *redis.Client) *world {
	t.Helper()
	w := &world{t: t, ctx: context.Background(), prefix: prefix, dial: dial}
	w.client, w.rdb = w.space(nil)
	return w
}

// space makes a client on a connection of its own, through l if there is one.
func (w *world) space(l *line) (*queue.Client, *redis.Client) {
	w.t.Helper()
	rdb := w.dial()
	if l != nil {
		rdb.AddHook(l)
	}
	c, err := queue.New(rdb, queue.Options{Prefix: w.prefix})
	w.must(err)
	w.t.Cleanup(func() { _ = c.Close() })
	return c, rdb
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// pass lets virtual time go by, and what follows from it happen.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// eventually waits for something to become true in real time.
func (w *world) eventually(what string, within time.Duration, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * ms)
	defer tick.Stop()
	for end := time.Now().Add(within); !ok(); <-tick.C {
		if time.Now().After(end) {
			w.t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// enqueue adds n jobs and returns their ids.
func (w *world) enqueue(q string, n int, o queue.JobOptions) []string {
	w.t.Helper()
	w.must(w.client.Register(w.ctx, q))
	o.Queue = q
	requests := make([]queue.Request, n)
	for i := range requests {
		requests[i] = queue.Request{Kind: "k", Payload: []byte("{}"), JobOptions: o}
	}
	ids := make([]string, n)
	for i, r := range w.client.EnqueueMany(w.ctx, requests) {
		w.must(r.Err)
		ids[i] = r.ID
	}
	return ids
}

func (w *world) info(q string) queue.QueueInfo {
	w.t.Helper()
	info, err := w.client.Queue(w.ctx, q)
	w.must(err)
	return info
}

func (w *world) state(q, id string) queue.State {
	w.t.Helper()
	r, err := w.client.Job(w.ctx, q, id)
	w.must(err)
	return r.State
}

func (w *world) key(q, what string) string { return w.prefix + ":{" + q + "}:" + what }

// claim lets a session take jobs of a queue until it has n.
func (w *world) claim(session, q string, n int) []*queue.Claim {
	w.t.Helper()
	s, err := w.client.Session(session)
	w.must(err)
	var claims []*queue.Claim
	for len(claims) < n {
		x, err := s.Exchange(w.ctx, q, queue.Exchange{Want: n - len(claims)})
		w.must(err)
		if len(x.Claims) == 0 {
			w.t.Fatalf("%s got %d of %d jobs", session, len(claims), n)
		}
		claims = append(claims, x.Claims...)
	}
	return claims
}

// register makes a session that beats once and never again.
func (w *world) register(session string) {
	w.t.Helper()
	_, err := w.client.Beat(w.ctx, queue.Beat{Session: session})
	w.must(err)
}

// node is a process as far as the sweeper is concerned: a heart and a Sweeper.
type node struct {
	*Sweeper
	w       *world
	line    *line // of the moves
	heart   *line
	log     *logbook
	witness witness
	holder  atomic.Pointer[string]
	wires   []*redis.Client
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

func (w *world) node(session string) *node {
	w.t.Helper()
	n := &node{w: w, line: &line{}, heart: &line{}, log: &logbook{}}
	space, rdb := w.space(n.line)
	blocking, wire := w.space(n.line)
	n.wires = []*redis.Client{rdb, wire}
	l, err := lock.New(rdb, lock.Options{Key: space.SweeperKey(), Session: session,
		Alive: func() bool { return n.Alive() }, Held: func() bool { return n.held() != "" }})
	w.must(err)
	n.Sweeper, err = New(Options{Space: space, Poke: blocking, Lock: l, Session: session, Watch: NewWatch(),
		Witness: &n.witness, Held: n.held, Log: zerolog.New(n.log)})
	w.must(err)
	return n
}

func (n *node) held() string {
	if h := n.holder.Load(); h != nil {
		return *h
	}
	return ""
}

// start runs heart and Sweeper until the test ends, or stop.
func (n *node) start() *node {
	ctx, cancel := context.WithCancel(n.w.ctx)
	n.cancel = cancel
	beats, _ := n.w.space(n.heart)
	n.done.Go(func() { n.beat(ctx, beats) })
	n.done.Go(func() {
		if err := n.Run(ctx); err != nil {
			n.w.t.Errorf("Run: %v", err)
		}
	})
	n.w.t.Cleanup(n.stop)
	return n
}

func (n *node) stop() {
	n.cancel()
	n.done.Wait()
}

// kill is kill -9: nothing reaches Redis any more.
func (n *node) kill() {
	n.line.breakBy(func(string) error { return net.ErrClosed })
	n.heart.breakBy(func(string) error { return net.ErrClosed })
	n.hangUp()
	n.stop()
}

// hangUp closes the connections, as the kernel does for a dead process.
func (n *node) hangUp() {
	for _, rdb := range n.wires {
		_ = rdb.Close()
	}
}

func (n *node) beat(ctx context.Context, beats *queue.Client) {
	for ctx.Err() == nil {
		sent := time.Now()
		b, err := beats.Beat(ctx, queue.Beat{Session: n.o.Session, All: true})
		if err == nil {
			n.holder.Store(&b.Holder)
			n.o.Watch.See(sent, time.Now(), b.All)
		}
		every := 500 * ms
		if n.o.Watch.Suspicious(sent) {
			every = 100 * ms
		}
		pause(ctx, time.Until(sent.Add(every)), nil)
	}
}

// sweeping waits until the node is the sweeper, in real time.
func (n *node) sweeping() *node {
	n.w.t.Helper()
	n.w.eventually("it sweeps", 10*time.Second, func() bool { return n.Stats().Sweeping })
	return n
}

// witness testifies against those it was told about.
type witness struct{ dead sync.Map }

func (v *witness) Testify(_ context.Context, session string) bool {
	_, dead := v.dead.Load(session)
	return dead
}

// line stands between a client and Redis. It counts commands by name, a script
// by what it does, and breaks some on demand.
type line struct {
	mu    sync.Mutex
	fault func(command string) error
	sent  map[string]int
}

// scripts by their hash; what is none of them is the lock's.
var scripts = queue.Scripts()

func commandName(cmd redis.Cmder) string {
	name, args := strings.ToLower(cmd.Name()), cmd.Args()
	if !strings.HasPrefix(name, "eval") || len(args) < 2 {
		return name
	}
	hash := fmt.Sprint(args[1])
	if name == "eval" {
		hash = fmt.Sprintf("%x", sha1.Sum([]byte(hash)))
	}
	return cmp.Or(scripts[hash], "lock")
}

// breakBy makes commands fail for which fault returns an error; nil heals.
func (l *line) breakBy(fault func(command string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = fault
}

func (l *line) note(cmd redis.Cmder) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent == nil {
		l.sent = map[string]int{}
	}
	name := commandName(cmd)
	l.sent[name]++
	if l.fault == nil {
		return nil
	}
	return l.fault(name)
}

// calls returns how often a command was sent, "" of all of them.
func (l *line) calls(command string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, sent := range l.sent {
		if command == "" || command == name {
			n += sent
		}
	}
	return n
}

func (l *line) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *line) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := l.note(cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (l *line) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := l.note(cmds[0]); err != nil { // one call, whatever it carries
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
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

func (b *logbook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// count is the number of lines that contain the words.
func (b *logbook) count(words string) (n int) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, words) {
			n++
		}
	}
	return n
}
