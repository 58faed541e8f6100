package model

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// places says where each protection of the models stands in the code: a file,
// and a text in it. A text that moved is no fault by itself: read the model
// again, mend it if the protocol has changed, then name the new text.
var places = map[string]map[string][][2]string{
	"claims": {
		"TURN":     {{"queue/lua/exchange.lua", "turn <= tonumber(holder)"}, {"node/exchanger.go", "e.barrier = true"}},
		"TOMB":     {{"queue/lua/reclaim.lua", "call('HSET', holders, session, 'gone ' .. int(ms))"}, {"queue/lua/exchange.lua", "if gone then k = 0"}},
		"ONE":      {{"queue/lua/exchange.lua", "many('HSET', active, tokens)"}},
		"ORDER":    {{"sweeper/survey.go", "holders := a.holders(ctx, queues)"}},
		"REPOCH":   {{"sweeper/term.go", "t.raise(ctx, fenced.Seen)"}, {"queue/lua/raise.lua", "math.max(us, last + 1, ARGV[2] + 1)"}},
		"ROLLCALL": {{"node/exchanger.go", "a roll call finds what was claimed in vain"}},
		"FENCE":    {{"queue/lua/exchange.lua", "held[j] ~= ARGV[i + 1]"}},
	},
	"calls": {
		"TURN":     {{"queue/lua/prelude.lua", "tonumber(turn) < tonumber(n)"}},
		"KEPT":     {{"queue/lua/prelude.lua", "return {'OK', int(ms), outcomes}"}},
		"ONCE":     {{"queue/lane.go", "l.turn++"}},
		"SEEN":     {{"queue/lua/enqueue.lua", "if seen[id] or"}},
		"CMARK":    {{"queue/lua/exchange.lua", "call('SISMEMBER', cancels, id) == 1"}, {"queue/lua/reclaim.lua", "call('SISMEMBER', cancels, id) == 1"}},
		"FENCE":    {{"queue/lua/exchange.lua", "held[j] ~= ARGV[i + 1]"}},
		"NEWFIRST": {{"queue/lua/promote.lua", "call('ZADD', waiting, unpack(ranks))\n  call('ZREM', delayed, unpack(ids))"}},
		"PATOM":    {{"queue/lua/promote.lua", "call('ZRANGEBYSCORE', delayed"}},
		"TRIMOK":   {{"queue/lua/trim.lua", "before(match(v, '^%d+ (%d+)'), 1200000)"}},
		"IDMEM":    {{"queue/lua/prelude.lua", "local memory = 600000"}},
		"AGE":      {{"queue/lua/prelude.lua", "if ms - age_ms > 300000 then"}},
		"CLEAN":    {{"queue/lua/exchange.lua", "many('ZREM', delayed, out)"}},
	},
}

// ahead are protections whose scripts are still to come.
var ahead = map[string]string{
	"calls UOWNER": "unique keys",
	"calls RUNIQ":  "unique keys",
	"calls PKNOW":  "purge",
}

var protection = regexp.MustCompile(`(?m)^ \*   ([A-Z]+) `)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEachProtectionIsInTheCode(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(places)) {
		for _, m := range protection.FindAllStringSubmatch(read(t, name+".pml"), -1) {
			found := places[name][m[1]]
			if len(found) == 0 && ahead[name+" "+m[1]] == "" {
				t.Errorf("%s.pml has the protection %s; say here where it stands in the code", name, m[1])
			}
			for _, p := range found {
				if !strings.Contains(read(t, filepath.Join("..", "..", p[0])), p[1]) {
					t.Errorf("%s of %s.pml: %s has no %q any more; read the model again, then name the new text", m[1], name, p[0], p[1])
				}
			}
		}
	}
}

func TestEachProtectionIsTakenAwayInASearch(t *testing.T) {
	t.Parallel()
	searches := read(t, "searches")
	for name := range places {
		for _, m := range protection.FindAllStringSubmatch(read(t, name+".pml"), -1) {
			off := regexp.MustCompile(`(?m)^\+?off-\S+ +` + name + ` found .*-D` + m[1] + `=0`)
			if !off.MatchString(searches) {
				t.Errorf("no search of %s takes %s away", name, m[1])
			}
		}
	}
}
