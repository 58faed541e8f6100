package node

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/queue"
)

// world is Redis and the way to it in the life of one seed.
type world struct {
	plan  *plan
	redis *miniredis.Miniredis
	began time.Time
	plant plant

	flying sync.WaitGroup // wires and copies
	hurry  chan struct{}  // closed: nothing waits any more

	mu    sync.Mutex // guards all below
	calm  bool       // all calls go well
	out   bool       // Redis is away
	all   []*actor
	shas  map[string]string
	trace []told
	calls int
	beats map[string]string // session -> its last beat, as Redis has it
	met   map[string]int    // what the seed has met, for the coverage
	wrong []string
}

// request is a command on its way.
type request struct {
	a    *actor
	name string // of the script, or the command
	args []string
	fate fate
}

// told is a line of the trace.
type told struct {
	at     time.Duration
	c      *request
	what   string
	answer string
}

func newWorld(p *plan, bad plant) *world {
	w := &world{plan: p, redis: miniredis.NewMiniRedis(), began: time.Now(), plant: bad, hurry: make(chan struct{}), shas: map[string]string{},
		beats: map[string]string{}, met: map[string]int{}}
	w.redis.ClockTTL(true)
	w.redis.Seed(int(p.seed))
	c, _ := w.redis.Dial() // starts it
	_ = c.Close()
	for _, q := range []string{"cluster", queue.DefaultQueue} {
		w.redis.HSet("kelpie:{"+q+"}:meta", "log", "1")
	}
	return w
}

// wait lets time go by; a call that is still on its way at the end arrives then.
func (w *world) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.hurry:
	}
}

func (w *world) down() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out
}

// outage takes Redis away, with all connections and, as a restart does, all
// scripts; or brings it back.
func (w *world) outage(on bool) {
	w.mu.Lock()
	w.out = on
	all := w.all
	w.mu.Unlock()
	if on {
		for _, a := range all {
			a.cut()
		}
		w.flush()
	}
}

func (w *world) flush() {
	w.redis.Server().Dispatch(newLine().peer, []string{"SCRIPT", "FLUSH"})
}

// exec does a call, at once.
func (w *world) exec(l *line, c *request) []byte {
	w.redis.Server().Dispatch(l.peer, w.bent(c))
	l.peer.Flush()
	answer := append([]byte(nil), l.out.Bytes()...)
	l.out.Reset()
	if w.plant.answer != nil {
		answer = w.plant.answer(c, answer)
	}
	return answer
}

// bent puts the planted text of a script in the place of the product's.
func (w *world) bent(c *request) []string {
	edit := w.plant.scripts[c.name]
	if edit == nil {
		return c.args
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch strings.ToLower(c.args[0]) {
	case "evalsha":
		if sha, ok := w.shas[c.args[1]]; ok {
			return append([]string{"EVALSHA", sha}, c.args[2:]...)
		}
	case "eval":
		text := edit(c.args[1])
		if text == c.args[1] {
			panic("nothing of " + c.name + ".lua was changed")
		}
		w.shas[hash(c.args[1])] = hash(text)
		return append([]string{"EVAL", text}, c.args[2:]...)
	}
	return c.args
}

func hash(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (w *world) told(c *request, what string, answer []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	w.meet(c, what, answer)
	w.trace = append(w.trace, told{time.Since(w.began), c, what, string(answer[:min(len(answer), 300)])})
}

// note puts something into the trace that is no call.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, told{at: time.Since(w.began), what: fmt.Sprintf(format, args...)})
}

var inTrace = strings.NewReplacer("\r\n", " ", "\n", "|")

func (w *world) traceText() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, t := range w.trace {
		if t.c == nil {
			fmt.Fprintf(&b, "%9.4f %s\n", t.at.Seconds(), t.what)
			continue
		}
		fmt.Fprintf(&b, "%9.4f %-6s %-9s %s", t.at.Seconds(), t.c.a.name, t.c.name, t.c.show())
		if t.what != "" {
			fmt.Fprintf(&b, " [%s]", t.what)
		}
		fmt.Fprintf(&b, " -> %s\n", inTrace.Replace(t.answer))
	}
	return b.String()
}

// argv is the arguments of a command, or of a script without its text and keys.
func (c *request) argv() []string {
	if !strings.HasPrefix(strings.ToLower(c.args[0]), "eval") || len(c.args) < 3 {
		return c.args[1:]
	}
	keys, _ := strconv.Atoi(c.args[2])
	return c.args[min(3+keys, len(c.args)):]
}

func (c *request) show() string {
	text := inTrace.Replace(strings.Join(c.argv(), " "))
	return text[:min(len(text), 160)]
}

// actor is a process as Redis sees it: its connections can be slow, broken, or
// stand still.
type actor struct {
	world *world
	name  string

	streams   map[string]*rand.Rand // world.mu guards these two
	heartless bool                  // its beats are lost

	mu     sync.Mutex // guards all below
	dead   bool
	paused chan struct{} // closed when it goes on; nil: it goes
	wires  map[*wire]bool
}

func (w *world) actor(name string) *actor {
	a := &actor{world: w, name: name, wires: map[*wire]bool{}, streams: map[string]*rand.Rand{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, a)
	return a
}

// tune makes a Redis client one of this actor.
func (a *actor) tune(o *redis.Options) {
	o.Dialer = a.dial
	o.ReadBufferSize, o.WriteBufferSize = 1024, 1024 // a seed opens a hundred connections
}

func (a *actor) dial(_ context.Context, _, _ string) (net.Conn, error) {
	a.awake()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead || a.world.down() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	wire := newWire(a)
	a.wires[wire] = true
	return wire, nil
}

func (a *actor) forget(w *wire) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.wires, w)
}

// cut breaks all connections. What was written to them arrives.
func (a *actor) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.wires {
		w.fail(syscall.ECONNRESET)
	}
}

// awake waits while the actor is paused.
func (a *actor) awake() {
	for {
		a.mu.Lock()
		paused := a.paused
		a.mu.Unlock()
		if paused == nil {
			return
		}
		<-paused
	}
}

func (a *actor) pause() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused == nil && !a.dead {
		a.paused = make(chan struct{})
	}
}

func (a *actor) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused != nil {
		close(a.paused)
		a.paused = nil
	}
}

// kill cuts the actor off for ever.
func (a *actor) kill() {
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	a.cut()
	a.resume()
}

var scriptNames = queue.Scripts()

// call draws the fate of a command.
func (a *actor) call(args []string) *request {
	c := &request{a: a, name: strings.ToLower(args[0]), args: args}
	switch c.name {
	case "evalsha":
		c.name = or(scriptNames[args[1]], "lock")
	case "eval":
		c.name = or(scriptNames[hash(args[1])], "lock")
	case "hello", "client":
		return c
	}
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	share := 1.0
	if c.name == "beat" || c.name == "lock" {
		share = 0.2 // a beat that fails stops a watch, and nobody is condemned
	}
	f := a.world.plan.weather.draw(a.stream(c.name), share)
	switch {
	case a.world.calm:
		f = fate{before: 100 * time.Microsecond, after: 100 * time.Microsecond}
	case a.heartless && c.name == "beat":
		f.what = lost
	}
	c.fate = f
	return c
}

func (a *actor) loseBeats(on bool) {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	a.heartless = on
}

// stream is the source of numbers for calls of a name; world.mu is held.
func (a *actor) stream(name string) *rand.Rand {
	if a.streams[name] == nil {
		a.streams[name] = stream(a.world.plan.seed, a.name, name)
	}
	return a.streams[name]
}

// Testify makes an actor a witness that says what the seed says: no safety may
// rest on it.
func (a *actor) Testify(context.Context, string) bool {
	a.awake()
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	return a.stream("witness").Float64() < a.world.plan.lies
}
