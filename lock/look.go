package lock

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed look.lua
var lookSource string

var lookScript = redis.NewScript(lookSource)

// found is what stands where the lock should be.
type found struct {
	kind  string        // "" when there is nothing
	ttl   time.Duration // below 0: none
	value string        // the first 100 bytes, if it is a string
}

// blocks says in a few words why waiting is in vain; "" if the key is a lock
// that will expire. A peer may have a longer TTL than we do, but not by much.
func (f found) blocks(ttl time.Duration) string {
	limit := max(10*ttl, time.Minute)
	switch {
	case f.kind == "":
		return ""
	case f.kind != "string":
		return fmt.Sprintf("the key holds a %s, not a lock", f.kind)
	case f.ttl < 0:
		return "the key has no expiry, so it is no lock of a living process"
	case f.ttl > limit:
		return fmt.Sprintf("the key expires only in %v, so it is no lock of a living process", f.ttl.Round(time.Second))
	}
	return ""
}

// look reports once when the key can never become free by waiting, and once
// when it can again. An error is not news: the attempt before it failed alike.
func (l *Lock) look(ctx context.Context) {
	f, err := l.ask(ctx)
	if err != nil {
		return
	}
	why := f.blocks(l.opts.TTL)
	if why == "" {
		l.unblocked()
		return
	}
	if l.count.blocked.Swap(&why) == nil {
		l.opts.Log.Error().Str("reason", why).Str("value", f.value).
			Str("hint", fmt.Sprintf("remove it: redis-cli DEL '%s'", l.opts.Key)).
			Msg("nobody can obtain the lock")
	}
}

func (l *Lock) unblocked() {
	if l.count.blocked.Swap(nil) != nil {
		l.opts.Log.Info().Msg("the lock can be obtained again")
	}
}

func (l *Lock) ask(ctx context.Context) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, l.opts.Attempt)
	defer cancel()
	reply, err := lookScript.Run(ctx, l.rdb, []string{l.opts.Key}).Slice()
	if err != nil {
		return found{}, err
	}
	return parseFound(reply)
}

func parseFound(reply []any) (found, error) {
	if len(reply) == 1 && reply[0] == "FREE" {
		return found{}, nil
	}
	if len(reply) == 4 && reply[0] == "HELD" {
		kind, isKind := reply[1].(string)
		ms, isNumber := reply[2].(int64)
		value, isValue := reply[3].(string)
		if isKind && isNumber && isValue {
			return found{kind: kind, ttl: time.Duration(ms) * time.Millisecond, value: value}, nil
		}
	}
	return found{}, fmt.Errorf("lock: unexpected reply of look: %v", reply)
}
