package queue

import (
	"context"
	"time"
)

// Beat is a node's sign of life.
type Beat struct {
	Session string
	All     bool   // return everybody's beats
	Info    []byte // JSON for the nodes hash; nil if unchanged
	Bye     bool   // the last one: the session ends
}

// Beats is the answer to a Beat.
type Beats struct {
	Known  bool             // the nodes hash has this session
	Lock   string           // value of the sweeper lock, "" if nobody holds it
	Holder string           // session that holds it
	Pulse  int64            // beat of the holder (Redis ms), 0 if it has none
	All    map[string]int64 // session -> beat, where wanted
	At     time.Time        // by Redis's clock
}

// Beat says "now" for a session. ErrGone: the session was condemned and never
// comes back. ErrFormat: the data belong to another major version.
func (c *Client) Beat(ctx context.Context, b Beat) (Beats, error) {
	args := []any{b.Session, flag(b.All), b.Info, flag(b.Bye), formatVersion}
	r, err := beatScript.run(ctx, c.rdb, c.keys.list(reserved, beatScript.keys), args)
	if err != nil {
		return Beats{}, wrap("beat", "", "", err)
	}
	c.clock.saw(r.int(1))
	if r.word() == "LOST" {
		return Beats{}, wrap("beat", "", "", ErrGone)
	}
	if err := checkFormat(r.str(2)); err != nil {
		return Beats{}, wrap("beat", "", "", err)
	}
	out := Beats{Known: r.str(3) == "1", Lock: r.str(4), Holder: lockHolder(r.str(4)), Pulse: r.int(5), At: time.UnixMilli(r.int(1)).UTC()}
	if b.All {
		list := r.list(6)
		out.All = make(map[string]int64, len(list)/2)
		for i := 0; i+1 < len(list); i += 2 {
			out.All[list.str(i)] = list.int(i + 1)
		}
	}
	return out, nil
}

// lockToken is the length of redislock's random token; the session follows.
const lockToken = 22

func lockHolder(value string) string {
	if len(value) <= lockToken {
		return ""
	}
	return value[lockToken:]
}

// Condemned is the answer to Condemn.
type Condemned string

// Done: the session is dead for ever. Alive: it has beaten since. Absent: there
// is no such session.
const (
	Done   Condemned = "DONE"
	Alive  Condemned = "ALIVE"
	Absent Condemned = "ABSENT"
)

// Condemn declares a session dead, if its beat is still the one given.
func (c *Client) Condemn(ctx context.Context, session string, beat int64) (Condemned, error) {
	r, err := condemnScript.run(ctx, c.rdb, c.keys.list(reserved, condemnScript.keys), []any{session, beat})
	if err != nil {
		return "", wrap("condemn", "", "", err)
	}
	return Condemned(r.word()), nil
}

// LastBeat returns the beat of a session (Redis ms), and false if it has none.
func (c *Client) LastBeat(ctx context.Context, session string) (int64, bool, error) {
	v, err := c.rdb.ZScore(ctx, c.keys.whole("sessions"), session).Result()
	if isNil(err) {
		return 0, false, nil
	}
	return int64(v), err == nil, wrap("read", "", "", err)
}
