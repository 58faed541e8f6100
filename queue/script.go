package queue

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var sources embed.FS

// script is one move: a file in lua/ behind the common prelude.
type script struct {
	name string
	keys []string // names, in the order of the header
	lua  *redis.Script
}

var (
	enqueueScript    = load("enqueue")
	exchangeScript   = load("exchange")
	beatScript       = load("beat")
	condemnScript    = load("condemn")
	raiseScript      = load("raise")
	promoteScript    = load("promote")
	reclaimScript    = load("reclaim")
	trimScript       = load("trim")
	repairScript     = load("repair")
	reviveScript     = load("revive")
	rescheduleScript = load("reschedule")
	oldestScript     = load("oldest")
	peekScript       = load("peek")
)

var (
	keysHeader = regexp.MustCompile(`(?ms)^-- KEYS (.*?)^-- ARGV`)
	keyName    = regexp.MustCompile(`\d+ (\w+) (?:HASH|ZSET|SET|LIST|STRING)\b`)
)

// allScripts lists every move.
func allScripts() []*script {
	return []*script{enqueueScript, exchangeScript, beatScript, condemnScript, raiseScript, promoteScript, reclaimScript,
		trimScript, repairScript, reviveScript, rescheduleScript, oldestScript, peekScript}
}

// Scripts returns the name of each script by its SHA-1, as EVALSHA has it.
func Scripts() map[string]string {
	names := map[string]string{}
	for _, s := range allScripts() {
		names[s.lua.Hash()] = s.name
	}
	return names
}

// load reads a script; the header is the one place that lists its keys.
func load(name string) *script {
	body := source(name)
	s := &script{name: name, lua: redis.NewScript(source("prelude") + body)}
	header := keysHeader.FindStringSubmatch(body)
	if header == nil {
		panic("queue/lua/" + name + ".lua: no KEYS in its header")
	}
	for _, m := range keyName.FindAllStringSubmatch(header[1], -1) {
		s.keys = append(s.keys, m[1])
	}
	return s
}

func source(name string) string {
	b, err := sources.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// run calls the script once. Redis forgets scripts when it restarts; NOSCRIPT
// says that nothing ran, so the text is sent then.
func (s *script) run(ctx context.Context, rdb redis.Scripter, keys []string, args []any) (reply, error) {
	v, err := rdb.EvalSha(ctx, s.lua.Hash(), keys, args...).Result()
	if isNoScript(err) {
		v, err = s.lua.Eval(ctx, rdb, keys, args...).Result()
	}
	if err != nil {
		return nil, err
	}
	return asReply(s.name, v)
}

func isNoScript(err error) bool { return err != nil && strings.Contains(err.Error(), "NOSCRIPT") }

// reply is a list that starts with a word.
type reply []any

func asReply(name string, v any) (reply, error) {
	list, ok := v.([]any)
	if !ok || len(list) < 2 {
		return nil, fmt.Errorf("script %s: reply %T not understood", name, v)
	}
	return reply(list), nil
}

func (r reply) word() string { return r.str(0) }

func (r reply) str(i int) string {
	if i >= len(r) {
		return ""
	}
	switch v := r[i].(type) {
	case string:
		return v
	case int64:
		return fmt.Sprint(v)
	}
	return ""
}

func (r reply) int(i int) int64 { return parseInt(r.str(i)) }

func (r reply) list(i int) reply {
	if i >= len(r) {
		return nil
	}
	list, _ := r[i].([]any)
	return reply(list)
}
