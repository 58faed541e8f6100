package node

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kelpiehq/kelpie/lock"
	"github.com/kelpiehq/kelpie/queue"
	"github.com/kelpiehq/kelpie/sweeper"
	"github.com/rs/zerolog"
)

// phase is how far an incarnation has come.
type phase int32

const (
	phaseLive     phase = iota
	phaseDraining       // claims nothing, handlers may finish
	phaseHandBack       // handlers were told to end, all goes back
	phaseGone           // the session was lost: nothing counts any more
)

// incarnation is the life of one session. A node has a new one at every start
// and whenever it is told that its session was condemned.
type incarnation struct {
	n       *Node
	session string
	born    time.Time
	claims  *queue.Session
	log     zerolog.Logger

	exchangers []*exchanger
	handlers   context.Context // of all handlers
	cancelAll  context.CancelCauseFunc
	now        atomic.Int32 // phase
	doubt      atomic.Bool  // it may have been replaced: claims nothing
	lost       chan struct{}
	loseOnce   sync.Once

	watch   *sweeper.Watch
	trust   trust
	dialled atomic.Int64           // connections of the beats' pool, at the last beat
	holder  atomic.Pointer[string] // session that holds the sweeper lock
	lock    *lock.Lock
	sweeper *sweeper.Sweeper

	onLockFree func() // a beat shows that nobody holds the lock: try now

	wake           *queue.Client // blocks
	unwake, unpoke func()        // end what blocks
}

func newIncarnation(n *Node) (*incarnation, error) {
	in := &incarnation{n: n, session: newSession(n.cfg.Name), born: time.Now(), lost: make(chan struct{}), watch: sweeper.NewWatch()}
	in.watch.Every(n.cfg.Heartbeat)
	in.log = n.log.With().Str("session", in.session).Logger()
	in.handlers, in.cancelAll = context.WithCancelCause(context.Background())
	claims, err := n.redis.data.Session(in.session)
	if err != nil {
		return nil, err
	}
	in.claims = claims
	for _, s := range n.pool.seats {
		in.exchangers = append(in.exchangers, newExchanger(in, s))
	}
	if in.wake, in.unwake, err = n.redis.waiter(); err != nil {
		return nil, err
	}
	poke, unpoke, err := n.redis.waiter()
	if err != nil {
		return nil, err
	}
	in.unpoke = unpoke
	in.lock, err = lock.New(n.redis.controlClient, lock.Options{
		Key: n.redis.control.SweeperKey(), Session: in.session, Log: n.log,
		Alive: func() bool { return in.sweeper.Alive() },
		Held:  func() bool { return in.lockHolder() != "" },
	})
	if err != nil {
		return nil, err
	}
	in.onLockFree = in.lock.Nudge
	in.sweeper, err = sweeper.New(sweeper.Options{
		Space: n.redis.data, Poke: poke, Lock: in.lock, Session: in.session, Watch: in.watch,
		Witness: n.witness(in), Silence: n.cfg.Silence, Lease: n.cfg.Lease, Held: in.lockHolder, Log: n.log,
	})
	return in, err
}

func (in *incarnation) phase() phase { return phase(in.now.Load()) }

// enter goes on to a later phase; it never goes back.
func (in *incarnation) enter(p phase) {
	for old := in.now.Load(); old < int32(p); old = in.now.Load() {
		if in.now.CompareAndSwap(old, int32(p)) {
			break
		}
	}
	for _, e := range in.exchangers {
		ring(e.bell)
	}
}

// claiming reports whether new jobs may be taken.
func (in *incarnation) claiming() bool { return in.phase() == phaseLive && !in.doubt.Load() }

// lose ends the session from outside: handlers are cancelled, what they return
// will be refused. It returns at once.
func (in *incarnation) lose(why string) {
	in.loseOnce.Do(func() {
		in.log.Warn().Str("why", why).Msg("session lost: its jobs run elsewhere; a new session follows")
		in.enter(phaseGone)
		in.cancelAll(queue.ErrSessionLost)
		close(in.lost)
	})
}

// lockHolder returns the session that holds the sweeper lock, as the last beat
// said, or "".
func (in *incarnation) lockHolder() string {
	if p := in.holder.Load(); p != nil {
		return *p
	}
	return ""
}

// active counts the handlers that run.
func (in *incarnation) active() (n int) {
	for _, e := range in.exchangers {
		n += e.running.len()
	}
	return n
}

// quiet counts the queues that rest since they had jobs and gave none.
func (in *incarnation) quiet(now time.Time) (n int) {
	for _, e := range in.exchangers {
		if e.isQuiet(now) {
			n++
		}
	}
	return n
}

// run lives the session until it is lost (nil) or ctx ends and the node has
// drained. leftovers are joined by the node: exchangers of a lost session that
// still wait for their handlers; the end of life is their end, too.
func (in *incarnation) run(ctx, life context.Context) error {
	defer in.unwake()
	defer in.unpoke()
	switch err := in.register(ctx); {
	case errors.Is(err, queue.ErrGone): // its first beat counted, and the answer came too late
		in.lose("condemned before it had joined")
		return nil
	case err != nil:
		return err
	}
	in.log.Info().Int("workers", in.n.cfg.Workers).Msg("node joined the herd")
	hard, stopHard := context.WithCancel(life)
	var exchanging sync.WaitGroup
	for _, e := range in.exchangers {
		exchanging.Go(func() { e.run(hard) })
	}
	loops, stopLoops := context.WithCancel(hard)
	var looping sync.WaitGroup
	for _, f := range []func(context.Context){in.beatOn, in.listen, in.patrol, in.rollCaller} {
		looping.Go(func() { f(loops) })
	}
	sweeping, stopSweeper := context.WithCancel(hard)
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		if err := in.sweeper.Run(sweeping); err != nil {
			in.log.Error().Err(err).Msg("sweeper ended")
		}
	}()
	endSweeper := func() { stopSweeper(); in.unpoke(); <-swept }
	end := func() { endSweeper(); stopLoops(); in.unwake(); looping.Wait() }
	select {
	case <-in.lost:
		end()
		in.n.leftovers.Go(func() { exchanging.Wait(); stopHard() })
		return nil
	case <-ctx.Done():
	}
	err := in.drain(&exchanging, endSweeper, stopHard)
	end()
	in.sayBye()
	in.cancelAll(queue.ErrShutdown)
	stopHard()
	exchanging.Wait()
	return err
}

// register waits until Redis has taken the first beat. The record of the state
// directory is written before, so a crash at any moment is known there.
func (in *incarnation) register(ctx context.Context) error {
	if err := in.n.state.record(in.session); err != nil {
		return err
	}
	in.n.setCurrent(in)
	for try := 0; ; try++ {
		err := in.beat()
		if err == nil || permanent(err) {
			return err
		}
		in.n.redis.failed(err)
		if !sleep(ctx, backoff(try)) {
			return errStopped
		}
	}
}

// info is what the nodes hash says of this session.
func (in *incarnation) info() []byte {
	n := in.n
	weights := make(map[string]int, len(n.cfg.Queues))
	for _, q := range n.cfg.Queues {
		weights[q.Name] = q.Weight
	}
	b, _ := json.Marshal(queue.NodeInfo{ // plain fields: cannot fail
		Name: n.cfg.Name, Session: in.session, Version: n.cfg.Version, Gossip: n.gossipAddr(), HTTP: n.httpAddr(),
		Queues: weights, Workers: n.cfg.Workers, Active: in.active(), Draining: in.phase() != phaseLive,
		Since: n.since, Members: n.members(),
	})
	return b
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
