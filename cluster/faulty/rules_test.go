package faulty

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

const peersText = `"peers": {"10.0.0.1": "n1", "10.0.0.2": "n2", "10.0.0.2:9": "nine"}`

// write replaces the file, as its writer does.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// rules opens rules of n1 with these links.
func rules(t *testing.T, seed int, links string) *Rules {
	t.Helper()
	path := filepath.Join(t.TempDir(), "links.json")
	write(t, path, fmt.Sprintf(`{"seed": %d, %s, "links": [%s]}`, seed, peersText, links))
	r, err := Open(path, "n1", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEachWayHasItsFate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		links string
		to    string
		want  []time.Duration
	}{
		"without a rule it passes":           {``, "10.0.0.2:1", []time.Duration{0}},
		"a stranger's packet passes":         {`{"from":"n1","to":"n2","drop":1}`, "10.0.0.3:1", []time.Duration{0}},
		"all lost":                           {`{"from":"n1","to":"n2","drop":1}`, "10.0.0.2:1", nil},
		"the way back is another":            {`{"from":"n2","to":"n1","drop":1}`, "10.0.0.2:1", []time.Duration{0}},
		"others' ways are none of ours":      {`{"from":"n3","to":"n2","drop":1}`, "10.0.0.2:1", []time.Duration{0}},
		"an address with port goes first":    {`{"from":"n1","to":"nine","drop":1}`, "10.0.0.2:9", nil},
		"it is late":                         {`{"from":"n1","to":"n2","delay":5000000}`, "10.0.0.2:1", []time.Duration{5 * time.Millisecond}},
		"the last rule of a pair holds":      {`{"from":"n1","to":"n2","drop":1},{"from":"n1","to":"n2"}`, "10.0.0.2:1", []time.Duration{0}},
		"what is no address belongs to none": {`{"from":"n1","to":"n2","drop":1}`, "n2", []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rules(t, 1, tt.links).fate(tt.to); !slices.Equal(got, tt.want) {
				t.Errorf("fate = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPartsAreDrawnFromTheSeed(t *testing.T) {
	t.Parallel()
	const links = `{"from":"n1","to":"n2","drop":0.3,"duplicate":0.5,"delay":1000,"jitter":1000}`
	draw := func(seed int) (all [][]time.Duration) {
		r := rules(t, seed, links)
		for range 2000 {
			all = append(all, r.fate("10.0.0.2:1"))
		}
		return all
	}
	one := draw(1)
	if fmt.Sprint(one) != fmt.Sprint(draw(1)) {
		t.Error("the same seed gave another order of draws")
	}
	if fmt.Sprint(one) == fmt.Sprint(draw(2)) {
		t.Error("another seed gave the same order of draws")
	}
	lost, twice := 0, 0
	for _, copies := range one {
		switch len(copies) {
		case 0:
			lost++
		case 2:
			twice++
		}
		if len(copies) > 0 && (copies[0] < 1000 || copies[0] > 2000) {
			t.Fatalf("delay %v, want 1 to 2 µs", copies[0])
		}
	}
	if lost < 500 || lost > 700 || twice < 600 || twice > 800 {
		t.Errorf("%d of 2000 lost and %d twice, want about 600 and 700", lost, twice)
	}
}

func TestAChangeIsObeyedWithinTwentyMilliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.json")
		write(t, path, `{`+peersText+`}`)
		var said bytes.Buffer
		r, err := Open(path, "n1", zerolog.New(&said))
		if err != nil {
			t.Fatal(err)
		}
		step := func(what, text string, arrives bool, complaint string) {
			t.Helper()
			said.Reset()
			if text == "" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, path, text)
			}
			for range 2 { // the second look has nothing new to say
				time.Sleep(lookEvery) // of the bubble's clock
				if got := len(r.fate("10.0.0.2:1")) > 0; got != arrives {
					t.Errorf("%s: arrives: %v, want %v", what, got, arrives)
				}
			}
			if n := strings.Count(said.String(), "\n"); complaint == "" && n > 0 || complaint != "" && (n != 1 || !strings.Contains(said.String(), complaint)) {
				t.Errorf("%s: said %q, want %q", what, said.String(), complaint)
			}
		}
		cut := `{` + peersText + `, "links": [{"from":"n1","to":"n2","drop":1}]}`
		step("a cut", cut, false, "")
		step("half a file", cut[:40], false, "unexpected end of JSON")
		step("no file", "", false, "no such file")
		step("healed", `{`+peersText+`}`, true, "")
		write(t, path, cut)
		if len(r.fate("10.0.0.2:1")) == 0 {
			t.Error("the file is looked at for every packet")
		}
	})
}

func TestRulesThatSayNothingAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"no JSON":               {`links`, "invalid character"},
		"more than all":         {`{"links":[{"from":"n1","to":"n2","drop":1.5}]}`, "from n1 to n2: drop 1.5 and duplicate 0: must be 0 to 1"},
		"less than nothing":     {`{"links":[{"from":"n2","to":"n3","duplicate":-1}]}`, "must be 0 to 1"},
		"earlier than it began": {`{"links":[{"from":"n1","to":"n2","delay":-1}]}`, "must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "links.json")
			write(t, path, tt.text)
			if _, err := Open(path, "n1", zerolog.Nop()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open = %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), "n1", zerolog.Nop()); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestAStreamWaitsForWhatIsLost(t *testing.T) {
	t.Parallel()
	const out, in = `{"from":"n1","to":"n2",%s}`, `{"from":"n2","to":"n1",%s}`
	for name, tt := range map[string]struct {
		links string
		trip  trip
		want  time.Duration
		ok    bool
	}{
		"nothing is in the way":          {``, connects, 0, true},
		"a connect goes there and back":  {fmt.Sprintf(out, `"delay":1000`) + "," + fmt.Sprintf(in, `"delay":200`), connects, 1200, true},
		"what is sent goes there":        {fmt.Sprintf(out, `"delay":1000`) + "," + fmt.Sprintf(in, `"delay":200`), sends, 1000, true},
		"an answer comes back":           {fmt.Sprintf(out, `"delay":1000`) + "," + fmt.Sprintf(in, `"delay":200`), receives, 200, true},
		"the rest was on its way":        {fmt.Sprintf(out, `"delay":1000`) + "," + fmt.Sprintf(in, `"delay":200`), goesOn, 0, true},
		"cut on the way there":           {fmt.Sprintf(out, `"drop":1`), receives, 0, false},
		"cut on the way back":            {fmt.Sprintf(in, `"drop":1`), sends, 0, false},
		"even what was on its way stops": {fmt.Sprintf(in, `"drop":1`), goesOn, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := rules(t, 1, tt.links).passage("10.0.0.2:1", tt.trip)
			if got != tt.want || ok != tt.ok {
				t.Errorf("passage = %v, %v, want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
	r, slow := rules(t, 1, fmt.Sprintf(out, `"drop":0.5`)), 0
	for range 400 {
		switch d, ok := r.passage("10.0.0.2:1", sends); {
		case !ok || d%sendAgain != 0 || d > 63*sendAgain:
			t.Fatalf("passage = %v, %v: want a number of repetitions", d, ok)
		case d > 0:
			slow++
		}
	}
	if slow < 150 || slow > 250 {
		t.Errorf("%d of 400 were repeated, want about half", slow)
	}
}
