package node

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// plant is a protection taken out of the product on the way to Redis: the
// simulation must find that it is missing.
type plant struct {
	scripts map[string]func(string) string         // changes the text of a script
	answer  func(c *request, answer []byte) []byte // changes an answer
	rough   bool                                   // of every seed's plan
}

// without cuts a piece of each of some scripts out, or puts another in its place.
func without(piece, instead string, scripts ...string) plant {
	p := plant{scripts: map[string]func(string) string{}}
	for _, name := range scripts {
		p.scripts[name] = func(text string) string { return strings.Replace(text, piece, instead, 1) }
	}
	return p
}

// noRollCall hides from a node what it holds itself.
func noRollCall(c *request, answer []byte) []byte {
	if c.name != "hscan" {
		return answer
	}
	node, _, _ := strings.Cut(c.a.name, ".")
	own := []byte(" " + node + "-")
	if !bytes.Contains(answer, own) {
		return answer
	}
	return []byte("*2\r\n$1\r\n0\r\n*0\r\n")
}

const fenced = "if tonumber(m[1] or 0) > tonumber(ARGV[1]) then return {'FENCED', int(ms), m[1]} end\n"

// plants are the protections, each with the beginning of a complaint that names
// what it protects from.
var plants = []struct {
	name  string
	plant plant
	says  string
}{
	{"the turn of an exchange", without("if holder and not gone and turn <= tonumber(holder) then return {'STALE', int(ms)} end\n", "", "exchange"), "turns:"},
	{"the roll call", plant{answer: noRollCall}, "settled:"},
	{"the gone mark", without("if mark then call('HSET', holders, session, 'gone ' .. int(ms)) end\n", "", "reclaim"), "gone:"},
	{"the epoch of a sweep", without(fenced, "", "promote", "trim", "repair"), "epoch:"},
	{"the token of a settlement", without("if held[j] ~= ARGV[i + 1] or seen[id] then", "if not held[j] or seen[id] then", "exchange"), "settlement:"},
	{"Redis's clock", without("'(' .. int(ms + 1)", "'(' .. int(ms + 40)", "promote"), "early:"},
	{"the beat seen by who condemns", without("if tonumber(beat) ~= tonumber(ARGV[2]) then return {'ALIVE', int(ms)} end\n", "", "condemn"), "condemned:"},
	{"the turn of a client", without("local refusal = refused(senders, ARGV[1], ARGV[2], ARGV[3])\n", "local refusal = false\n", "enqueue"), "turns:"},
}

// within is how many seeds may pass before a missing protection is found. The
// rarest are found by one in thirty.
const within = 400

// One protection is taken out at a time. All of them under the race detector
// would take too long: the first ones are found soon.
func TestSimulationFindsAMissingProtection(t *testing.T) {
	for _, p := range plants[:plantsTested] {
		t.Run(p.name, func(t *testing.T) {
			p.plant.rough = true
			found := search(t, within, p.plant, func(out report) bool {
				return slices.ContainsFunc(out.wrong, func(w string) bool { return strings.HasPrefix(w, p.says) })
			})
			if found == nil {
				t.Fatalf("%d seeds are content without it", within)
			}
			t.Logf("seed %d: %q", found.seed, found.wrong)
		})
	}
}
