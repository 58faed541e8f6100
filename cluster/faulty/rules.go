package faulty

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// lookEvery is how often the file is looked at, at most.
const lookEvery = 20 * time.Millisecond

// Rules are what one node obeys. They are safe for concurrent use.
type Rules struct {
	path string
	self string
	log  zerolog.Logger

	mu     sync.Mutex
	looked time.Time
	seen   fs.FileInfo // of the file that was read
	bad    string      // the last complaint
	peers  map[string]string
	links  map[string]link // to others, by name
	back   map[string]link // from others
	seed   uint64
	draw   *rand.Rand
}

// link is one way.
type link struct {
	Drop      float64       `json:"drop"`
	Duplicate float64       `json:"duplicate"`
	Delay     time.Duration `json:"delay"`
	Jitter    time.Duration `json:"jitter"`
}

// file is the whole of it.
type file struct {
	Seed  uint64            `json:"seed"`
	Peers map[string]string `json:"peers"`
	Links []struct {
		From string `json:"from"`
		To   string `json:"to"`
		link
	} `json:"links"`
}

// Open reads the rules for the node self. Later changes of the file are obeyed;
// one that cannot be read then is logged, and the rules stay as they are.
func Open(path, self string, log zerolog.Logger) (*Rules, error) {
	r := &Rules{path: path, self: self, log: log}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = time.Now()
	if err := r.read(); err != nil {
		return nil, err
	}
	return r, nil
}

// read takes the file. The caller holds the lock.
func (r *Rules) read() error {
	info, err := os.Stat(r.path)
	if err != nil {
		return fmt.Errorf("rules of gossip: %w", err)
	}
	if r.seen != nil && os.SameFile(info, r.seen) && info.ModTime().Equal(r.seen.ModTime()) && info.Size() == r.seen.Size() {
		return nil
	}
	text, err := os.ReadFile(r.path)
	if err != nil {
		return fmt.Errorf("rules of gossip: %w", err)
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("rules of gossip: %s: %w", r.path, err)
	}
	links, back := map[string]link{}, map[string]link{}
	for _, l := range f.Links {
		if err := l.check(); err != nil {
			return fmt.Errorf("rules of gossip: %s: from %s to %s: %w", r.path, l.From, l.To, err)
		}
		switch r.self {
		case l.From:
			links[l.To] = l.link
		case l.To:
			back[l.From] = l.link
		}
	}
	if r.draw == nil || r.seed != f.Seed {
		name := fnv.New64a()
		_, _ = name.Write([]byte(r.self)) // never fails
		r.seed, r.draw = f.Seed, rand.New(rand.NewPCG(f.Seed, name.Sum64()))
	}
	r.seen, r.peers, r.links, r.back = info, f.Peers, links, back
	return nil
}

func (l link) check() error {
	if !(l.Drop >= 0 && l.Drop <= 1 && l.Duplicate >= 0 && l.Duplicate <= 1) {
		return fmt.Errorf("drop %v and duplicate %v: must be 0 to 1", l.Drop, l.Duplicate)
	}
	if l.Delay < 0 || l.Jitter < 0 {
		return fmt.Errorf("delay %v and jitter %v: must not be negative", l.Delay, l.Jitter)
	}
	return nil
}

// look reads the file again if it is time to. The caller holds the lock.
func (r *Rules) look() {
	if time.Since(r.looked) < lookEvery {
		return
	}
	r.looked = time.Now()
	err := r.read()
	switch {
	case err == nil:
		r.bad = ""
	case err.Error() != r.bad:
		r.bad = err.Error()
		r.log.Error().Err(err).Msg("the rules stay as they were")
	}
}

// name tells whose address that is, "" if nobody's. The caller holds the lock.
func (r *Rules) name(addr string) string {
	if name, ok := r.peers[addr]; ok {
		return name
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	return r.peers[host]
}

// fate is what happens to a packet: each element is a copy that arrives so much
// later; none: it is lost.
func (r *Rules) fate(addr string) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	l, ok := r.links[r.name(addr)]
	if !ok {
		return []time.Duration{0}
	}
	if r.chance(l.Drop) {
		return nil
	}
	copies := []time.Duration{r.delay(l)}
	if r.chance(l.Duplicate) {
		copies = append(copies, r.delay(l)+time.Duration(r.draw.Int64N(int64(echo))))
	}
	return copies
}

// echo is how long a second copy may lag behind.
const echo = 50 * time.Millisecond

// chance draws. Nothing is drawn where there is no choice.
func (r *Rules) chance(part float64) bool {
	return part >= 1 || part > 0 && r.draw.Float64() < part
}

func (r *Rules) delay(l link) time.Duration {
	if l.Jitter <= 0 {
		return l.Delay
	}
	return l.Delay + time.Duration(r.draw.Int64N(int64(l.Jitter)+1))
}

// How long TCP waits before it sends again what was lost, at first; then twice as
// long each time.
const (
	connectAgain = time.Second
	sendAgain    = 200 * time.Millisecond
)

// trip is what a stream is about to do.
type trip int

const (
	connects trip = iota // there and back
	sends
	receives
	goesOn // with what was on its way already
)

// passage is how long the trip takes. ok is false where nothing gets through.
func (r *Rules) passage(addr string, t trip) (d time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	name := r.name(addr)
	to, from := r.links[name], r.back[name]
	if to.Drop >= 1 || from.Drop >= 1 { // no acknowledgement passes either
		return 0, false
	}
	switch t {
	case connects:
		d = r.crossing(to, connectAgain) + r.crossing(from, connectAgain)
	case sends:
		d = r.crossing(to, sendAgain)
	case receives:
		d = r.crossing(from, sendAgain)
	}
	return d, true
}

// crossing is one way of a stream, repetitions included. The caller holds the
// lock.
func (r *Rules) crossing(l link, again time.Duration) time.Duration {
	d := r.delay(l)
	for range 6 {
		if !r.chance(l.Drop) {
			break
		}
		d += again
		again *= 2
	}
	return d
}
