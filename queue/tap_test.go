package queue

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// tap sits in a test's connection to Redis. It gives Redis a clock that stands
// still until the test moves it, cuts protections out of scripts, and keeps what
// was sent so that a late copy of it can be sent again. Redis and the program
// see nothing of it.
type tap struct {
	clock string // key that holds the time in µs

	mu     sync.Mutex
	now    time.Time // zero: Redis's own clock
	shas   map[string]string
	texts  map[string]string
	keep   bool
	copies []copied
	calls  atomic.Int64
}

// copied is a command as it went to Redis.
type copied struct {
	script string
	keys   []string
	args   []any
	cmd    redis.Cmder // as it was answered
}

// newTap changes every script in the way that edit says; nil leaves them.
func newTap(clock string, edit map[string]func(string) string) *tap {
	p := &tap{clock: clock, shas: map[string]string{}, texts: map[string]string{}}
	for _, s := range allScripts() {
		prelude, body := source("prelude"), source(s.name)
		timed := strings.Replace(prelude, "local now = call('TIME')", fmt.Sprintf(
			"local set = call('GET', '%s')\nlocal now = set and {string.sub(set, 1, -7), match(set, '0*(%%d+)', -6)} or call('TIME')", clock), 1)
		if timed == prelude {
			panic("the prelude reads TIME in another way than this test knows")
		}
		if f := edit[s.name]; f != nil {
			changed := f(body)
			if changed == body {
				panic("nothing of " + s.name + ".lua was changed")
			}
			body = changed
		}
		sum := sha1.Sum([]byte(timed + body))
		p.shas[s.lua.Hash()] = hex.EncodeToString(sum[:])
		p.texts[prelude+source(s.name)] = timed + body
	}
	return p
}

func (p *tap) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *tap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		p.change(cmd)
		err := next(ctx, cmd)
		p.tellTime(cmd)
		return err
	}
}

func (p *tap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			p.change(cmd)
		}
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			p.tellTime(cmd)
		}
		return err
	}
}

// change puts the changed script in the place of the original.
func (p *tap) change(cmd redis.Cmder) {
	p.calls.Add(1)
	args := cmd.Args()
	switch cmd.Name() {
	case "evalsha":
		p.copy(cmd, args)
		if sha, ok := p.shas[args[1].(string)]; ok {
			args[1] = sha
		}
	case "eval":
		if text, ok := p.texts[args[1].(string)]; ok {
			args[1] = text
		}
		p.answeredBy(cmd)
	case "script":
		if text, ok := p.texts[fmt.Sprint(args[len(args)-1])]; ok {
			args[len(args)-1] = text
		}
	}
}

// copy keeps a command with the original hash.
func (p *tap) copy(cmd redis.Cmder, args []any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.keep {
		return
	}
	for _, s := range allScripts() {
		if s.lua.Hash() == args[1] {
			c := copied{script: s.name, cmd: cmd}
			for _, k := range args[3 : 3+len(s.keys)] {
				c.keys = append(c.keys, fmt.Sprint(k))
			}
			c.args = append(c.args, args[3+len(s.keys):]...)
			p.copies = append(p.copies, c)
		}
	}
}

// answeredBy: the text is sent again for the last command, which Redis did not know.
func (p *tap) answeredBy(cmd redis.Cmder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keep && len(p.copies) > 0 {
		p.copies[len(p.copies)-1].cmd = cmd
	}
}

// again sends a late copy.
func (p *tap) again(t testing.TB, rdb redis.Scripter, c copied) reply {
	t.Helper()
	for _, s := range allScripts() {
		if s.name == c.script {
			r, err := s.run(context.Background(), rdb, c.keys, c.args)
			if err != nil {
				t.Fatalf("late copy of %s: %v", c.script, err)
			}
			return r
		}
	}
	t.Fatalf("no script %s", c.script)
	return nil
}

// last returns the last command of a script.
func (p *tap) last(t testing.TB, script string) copied {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.copies) - 1; i >= 0; i-- {
		if p.copies[i].script == script {
			return p.copies[i]
		}
	}
	t.Fatalf("no %s was sent", script)
	return copied{}
}

func (p *tap) tellTime(cmd redis.Cmder) {
	if c, ok := cmd.(*redis.TimeCmd); ok && c.Err() == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.now.IsZero() {
			c.SetVal(p.now)
		}
	}
}

// set stops Redis's clock at t; the zero time lets it run.
func (p *tap) set(ctx context.Context, rdb *redis.Client, t time.Time) error {
	p.mu.Lock()
	p.now = t
	p.mu.Unlock()
	if t.IsZero() {
		return rdb.Del(ctx, p.clock).Err()
	}
	return rdb.Set(ctx, p.clock, t.UnixMicro(), 0).Err()
}
