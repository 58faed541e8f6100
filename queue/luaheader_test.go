package queue

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mustGoOn are the scripts whose writes begin with an opener, since they have
// to work when Redis is full; the writers among the others must not have one.
var mustGoOn = map[string]bool{
	"exchange": true, "beat": true, "condemn": true, "reclaim": true, "raise": true, "promote": true, "trim": true, "repair": true,
	"enqueue": false, "revive": false, "reschedule": false,
}

var readsOnly = map[string]bool{"oldest": true, "peek": true}

var (
	writers = []string{"ZADD", "ZREM", "HSET", "HDEL", "HINCRBY", "SADD", "SREM", "LPUSH", "RPUSH", "SET", "SETNX", "DEL"}
	aCall   = regexp.MustCompile(`\b(?:call|many)\('([A-Z]+)', *([\w.\[\]]+)`)
	aRing   = regexp.MustCompile(`\bring\((\w+), (\w+)`)
	unpacks = regexp.MustCompile(`(?m)^local (.+) = unpack\(KEYS\)$`)
	anArg   = regexp.MustCompile(`(?m)(?:^-- ARGV|\s\s)\s*(\d+)(?:\.\.(\d+))? [a-z_]+`)
	perItem = regexp.MustCompile(`(?:then|per job).*(?:per (?:item|settlement|job|suspect)|id)`)
	sixEach = regexp.MustCompile(`then (\d) per`)
	usesArg = regexp.MustCompile(`ARGV\[(\d+)\]`)
	answers = regexp.MustCompile(`return \{(?:gone and '(\w+)' or )?'(\w+)'`)
	words   = regexp.MustCompile(`\b[A-Z]{2,}\b`)
	comment = regexp.MustCompile(`(?m)^--.*$|\s-- .*$`)
)

// luaFile is a script split for reading.
type luaFile struct {
	name, header, body string
	part               map[string]string // of the header, by its word
}

func readLua(t *testing.T, name string) luaFile {
	t.Helper()
	text := source(name)
	f := luaFile{name: name, part: map[string]string{}}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "--") && f.body == "" {
			f.header += line
		} else {
			f.body += line
		}
	}
	last := ""
	for line := range strings.Lines(f.header) {
		for _, w := range []string{"KEYS", "ARGV", "REPLY", "AGAIN", "WHY"} {
			if strings.HasPrefix(line, "-- "+w+" ") {
				last = w
			}
		}
		f.part[last] += line
	}
	f.body = comment.ReplaceAllString(f.body, "")
	return f
}

func TestEveryScriptIsWhatItsHeaderSays(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(sources, "lua/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(allScripts())+1 {
		t.Errorf("%d files in lua/ and %d scripts: each file is one move, besides the prelude", len(files), len(allScripts()))
	}
	for _, s := range allScripts() {
		t.Run(s.name, func(t *testing.T) {
			f := readLua(t, s.name)
			checkHeader(t, f)
			checkKeys(t, f, s.keys)
			checkArguments(t, f)
			checkReplies(t, f)
			checkOrder(t, f, s.keys)
			checkDialect(t, f.body)
		})
	}
	t.Run("prelude", func(t *testing.T) {
		body := comment.ReplaceAllString(source("prelude"), "")
		if n := strings.Count(body, "'TIME'"); n != 1 {
			t.Errorf("TIME is read %d times, want once", n)
		}
		checkDialect(t, body)
	})
}

func checkHeader(t *testing.T, f luaFile) {
	if !strings.HasPrefix(f.header, "-- "+f.name+": ") {
		t.Errorf("the header begins %q, want the script's name", f.header[:min(len(f.header), 20)])
	}
	for _, w := range []string{"KEYS", "ARGV", "REPLY", "AGAIN", "WHY"} {
		if len(strings.TrimSpace(strings.TrimPrefix(f.part[w], "-- "+w))) < 4 {
			t.Errorf("the header says nothing of %s", w)
		}
	}
	for i, m := range regexp.MustCompile(`(\d+) \w+ (?:HASH|ZSET|SET|LIST|STRING)\b`).FindAllStringSubmatch(f.part["KEYS"], -1) {
		if m[1] != fmt.Sprint(i+1) {
			t.Errorf("key %d of the header has the number %s", i+1, m[1])
		}
	}
}

func checkKeys(t *testing.T, f luaFile, keys []string) {
	m := unpacks.FindStringSubmatch(f.body)
	if m == nil {
		t.Fatal("the keys are not unpacked in one line")
	}
	if names := strings.Split(m[1], ", "); !slices.Equal(names, keys) {
		t.Errorf("unpacked %v, the header has %v", names, keys)
	}
	rest := strings.Replace(f.body, m[0], "", 1)
	for _, k := range keys {
		known := append(slices.Clone(queueKeys), clusterKeys...)
		if !slices.Contains(known, k) {
			t.Errorf("key %s is none that keys.go knows", k)
		}
		if !regexp.MustCompile(`[(,{ ]` + k + `[),} ]`).MatchString(rest) {
			t.Errorf("key %s is declared and not used", k)
		}
	}
	if regexp.MustCompile(`\bKEYS\b`).MatchString(rest) {
		t.Error("KEYS is used besides the one unpack")
	}
	for _, text := range regexp.MustCompile(`'[^'\n]*'`).FindAllString(rest, -1) {
		if strings.ContainsAny(text, "{}:") {
			t.Errorf("the string %s has a brace or a colon: a key is spelled in the script", text)
		}
	}
	for _, c := range aCall.FindAllStringSubmatch(rest, -1) {
		if c[1] != "TIME" && !slices.Contains(keys, c[2]) && !map[string]bool{"sets[i]": true, "sets[j]": true, "cut[i][1]": true, "hash": true, "set": true}[c[2]] {
			t.Errorf("%s of %s: not a declared key", c[1], c[2])
		}
	}
}

func checkArguments(t *testing.T, f luaFile) {
	declared := 0
	for _, m := range anArg.FindAllStringSubmatch(f.part["ARGV"], -1) {
		last := m[1]
		if m[2] != "" {
			last = m[2]
		}
		if m[1] != fmt.Sprint(declared+1) {
			t.Errorf("argument %s stands where %d is next", m[1], declared+1)
		}
		fmt.Sscan(last, &declared)
	}
	used := map[int]bool{}
	for _, m := range usesArg.FindAllStringSubmatch(f.body, -1) {
		n := 0
		fmt.Sscan(m[1], &n)
		used[n] = true
		if n > declared {
			t.Errorf("ARGV[%d] is used, the header has %d", n, declared)
		}
	}
	for n := 1; n <= declared; n++ {
		if !used[n] {
			t.Errorf("argument %d is declared and not used", n)
		}
	}
	if strings.Contains(f.body, "#ARGV") {
		if !perItem.MatchString(f.part["ARGV"]) {
			t.Error("the script takes a list, and the header does not say so")
		}
		step := "1"
		if m := sixEach.FindStringSubmatch(f.part["ARGV"]); m != nil {
			step = m[1]
		}
		want := fmt.Sprintf("for i = %d, #ARGV", declared+1)
		if step != "1" {
			want += ", " + step
		}
		if !strings.Contains(f.body, want+" do") {
			t.Errorf("the list of the header is not walked by %q", want)
		}
	}
}

// aRefusal is how a client's command leaves where it must not be applied.
const aRefusal = "if refusal then return refusal end"

func checkReplies(t *testing.T, f luaFile) {
	said := map[string]bool{}
	for _, alternative := range regexp.MustCompile(`\| *|REPLY `).Split(strings.ReplaceAll(f.part["REPLY"], "\n--", " "), -1)[1:] {
		if w := words.FindString(strings.Fields(alternative + " x")[0]); w != "" {
			said[w] = true
		}
	}
	given := map[string]bool{}
	for _, m := range answers.FindAllStringSubmatch(f.body, -1) {
		given[m[2]] = true
		if m[1] != "" {
			given[m[1]] = true
		}
	}
	if strings.Contains(f.body, aRefusal) { // in the words of the prelude
		prelude := source("prelude")
		for _, m := range answers.FindAllStringSubmatch(prelude[strings.Index(prelude, "local function refused("):], -1) {
			given[m[2]] = true
		}
	}
	for w := range given {
		if !said[w] {
			t.Errorf("the script answers %s, the header does not say so", w)
		}
	}
	for w := range said {
		if !given[w] {
			t.Errorf("the header has the answer %s, the script does not give it", w)
		}
	}
}

// checkOrder: every key is read before the first write, which is the opener in
// the scripts that must go on.
func checkOrder(t *testing.T, f luaFile, keys []string) {
	first, opener := -1, false
	read := map[string]bool{}
	for _, at := range aCall.FindAllStringSubmatchIndex(f.body, -1) {
		command, key := f.body[at[2]:at[3]], f.body[at[4]:at[5]]
		if slices.Contains(writers, command) {
			first = at[0]
			opener = command == "ZREM" && strings.HasPrefix(f.body[at[5]:], ", '')")
			if opener {
				read[key] = true // a wrong type fails in the opener, with nothing written
			}
			break
		}
		read[key] = true
	}
	if readsOnly[f.name] {
		if first >= 0 || strings.Contains(f.body, "ring(") {
			t.Error("it says that it only reads, and writes")
		}
		return
	}
	goesOn, known := mustGoOn[f.name]
	if !known || opener != goesOn {
		t.Errorf("begins its writes with an opener: %v, must: %v (known: %v)", opener, goesOn, known)
	}
	if strings.Contains(f.body, "sets[i]") { // repair reads a list of sets
		for k := range strings.SplitSeq(regexp.MustCompile(`sets = \{(.*?)\}`).FindStringSubmatch(f.body)[1], ", ") {
			read[k] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?:over|step|refused|opened)\((\w+), `).FindAllStringSubmatch(f.body[:first], -1) {
		read[m[1]] = true
	}
	for _, k := range keys {
		if !read[k] {
			t.Errorf("key %s is not read before the first write: a wrong type would fail in the middle", k)
		}
	}
	checkLast(t, f, first)
	if m := aRing.FindAllStringIndex(f.body, -1); m != nil && m[0][0] < first {
		t.Error("the wake token is pushed before the first write")
	}
	if tail := f.body[first:]; strings.Count(f.body[:first], "return {") > 0 && strings.Count(tail, "\nreturn {") != 1 {
		t.Error("there is a refusal after the first write")
	}
}

// checkLast: each script that writes tells what it did under its own name, behind
// all other writes.
func checkLast(t *testing.T, f luaFile, first int) {
	told := regexp.MustCompile(`\btell\(log, entry, '(\w+)'`).FindAllStringSubmatchIndex(f.body, -1)
	if len(told) != 1 || f.body[told[0][2]:told[0][3]] != f.name || told[0][0] < first {
		t.Fatalf("it must write one log entry, as %s and behind the first write", f.name)
	}
	for _, c := range aCall.FindAllStringSubmatch(f.body[told[0][1]:], -1) {
		if slices.Contains(writers, c[1]) {
			t.Errorf("%s comes behind the log entry, which must be the last write", c[1])
		}
	}
	if aRing.MatchString(f.body[told[0][1]:]) {
		t.Error("the wake token comes behind the log entry, which must be the last write")
	}
}

func checkDialect(t *testing.T, body string) {
	for _, no := range []string{"cmsgpack", "struct.", "bit.", "cjson", "redis.call", "redis.pcall", "pcall", "os.", "math.random", "tostring", "loadstring"} {
		if strings.Contains(strings.Replace(body, "local call, fmt, match, floor = redis.call", "", 1), no) {
			t.Errorf("uses %s", no)
		}
	}
	if !strings.Contains(body, "local now = ") && strings.Contains(body, "'TIME'") {
		t.Error("reads TIME besides the prelude")
	}
}
