package node

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

const (
	lookEvery   = 100 * time.Millisecond // while some beat is a second old
	watchAll    = 50                     // sessions up to which every node watches all
	watchers    = 20                     // above: the sweeper and so many others
	hungAfter   = 30 * time.Second       // a loop that works so long on one round hangs
	beatTimeout = 2 * time.Second
)

// trust is how long this node may believe that its session lives: counted from
// before the last beat that was answered, by the monotonic clock.
type trust struct {
	mu       sync.Mutex
	answered time.Time // start of the last answered beat
	grace    time.Time // until then every peer had lost Redis too
	info     []byte    // as sent last
}

// extend notes an answered beat.
func (t *trust) extend(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered = sent
}

// excuse notes that nobody who could condemn this session reaches Redis now. It
// comes too late when the age is over the limit: it may have been condemned before.
func (t *trust) excuse(now time.Time, limit time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unvouched(now) <= limit {
		t.grace = now
	}
}

// age is how long nobody vouched for this session.
func (t *trust) age(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unvouched(now)
}

// unvouched is age; mu is held.
func (t *trust) unvouched(now time.Time) time.Duration {
	since := t.answered
	if t.grace.After(since) {
		since = t.grace
	}
	return now.Sub(since)
}

// silentFor is how long no beat was answered.
func (t *trust) silentFor(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Sub(t.answered)
}

// beatOn beats until ctx ends. A failed beat is noted, not returned: a lease
// outlives many of them.
func (in *incarnation) beatOn(ctx context.Context) {
	for {
		wait := in.n.cfg.Heartbeat
		if in.watch.Suspicious(time.Now()) {
			wait = min(wait, lookEvery)
		}
		if !sleep(ctx, wait) {
			return
		}
		if e := in.hung(time.Now()); e != nil {
			in.n.complain.Do("hung "+e.queue, func() {
				e.log.Error().Msg("the exchange loop hangs: no heartbeat until it comes round")
			})
			continue
		}
		switch err := in.beat(); {
		case errors.Is(err, queue.ErrGone):
			in.lose("condemned")
			return
		case err != nil:
			in.n.redis.failed(err)
		}
	}
}

// hung returns an exchange loop that does not come round.
func (in *incarnation) hung(now time.Time) *exchanger {
	for _, e := range in.exchangers {
		if since := e.busy.Load(); since != 0 && now.Sub(in.born)-time.Duration(since) > hungAfter {
			return e
		}
	}
	return nil
}

// beat sends one beat and learns from its reply.
func (in *incarnation) beat() error {
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	all := in.watchesAll()
	b := queue.Beat{Session: in.session, All: all}
	info := in.info()
	if !bytes.Equal(info, in.trust.info) {
		b.Info = info
	}
	sent := time.Now() // before the call: a slow reply must not stretch the trust
	reply, err := in.n.redis.control.Beat(ctx, b)
	if err != nil {
		return err
	}
	in.n.redis.answered()
	in.trust.extend(sent)
	in.reconnected()
	in.trust.info = info
	if !reply.Known {
		in.trust.info = nil // Redis lost it: again with the next beat
	}
	in.holder.Store(&reply.Holder)
	if reply.Lock == "" {
		in.onLockFree() // it may have expired before its dead holder could be condemned
	}
	beats := reply.All
	if !all {
		beats = map[string]int64{}
		if reply.Pulse > 0 {
			beats[reply.Holder] = reply.Pulse
		}
	}
	in.watch.See(sent, time.Now(), beats)
	in.n.meet()
	return nil
}

// watchesAll reports whether this node watches every session: all nodes do in a
// small cluster, some in a large one, the others watch only the sweeper.
func (in *incarnation) watchesAll() bool {
	sessions := in.n.gossipSessions()
	if len(sessions) <= watchAll && len(in.watch.Sessions()) <= watchAll {
		return true
	}
	if in.sweeper.Stats().Sweeping {
		return true
	}
	lower := 0
	for _, s := range sessions {
		if s < in.session {
			lower++
		}
	}
	return lower < watchers
}

// sayBye is the session's last beat.
func (in *incarnation) sayBye() {
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	if _, err := in.n.redis.control.Beat(ctx, queue.Beat{Session: in.session, Bye: true}); err != nil && !errors.Is(err, queue.ErrGone) {
		in.log.Warn().Err(err).Msg("the last beat was not answered: others will notice by silence")
	}
}
