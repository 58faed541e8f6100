package demo

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kelpiehq/kelpie/queue"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with testdata/<name>.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs, -update writes it anew:\n%s", path, got)
	}
}

// busyScene is a moment after the first kill.
func busyScene() scene {
	node := func(name string, active int, sweeps bool) queue.NodeInfo {
		return queue.NodeInfo{
			Name: name, Session: name + "-er4zzj3k24", Active: active, Sweeper: sweeps, Epoch: 1796030902598956,
			HeartbeatAge: 240 * time.Millisecond, Members: []string{"moss-h6uv2pdfod", "bess-1aaaaaaaaa", "fly-2bbbbbbbbb"},
		}
	}
	s := scene{
		elapsed: 17 * time.Second, store: "redis-server 7.0.15", changes: 1, gone: []string{"fly"}, accepted: 412,
		look: look{
			nodes: []queue.NodeInfo{node("bess", 4, true), node("fly", 3, false), node("moss", 5, false)},
			queue: queue.QueueInfo{Waiting: 1, Delayed: 131, Active: 12, Dead: 8},
		},
		tally: tally{taken: 260, refused: 8, done: 268, faults: 61},
	}
	for i := range keptEvents {
		s.events = append(s.events, fmt.Sprintf("%5d.0 s  event %d %s", i, i, strings.Repeat("-", 8*i)))
	}
	return s
}

func TestTheScreen(t *testing.T) {
	t.Parallel()
	frame := busyScene().draw(screenRows, screenColumns)
	golden(t, "screen.golden", strings.Join(frame, "\n")+"\n")
}

func TestAScreenFitsItsTerminal(t *testing.T) {
	t.Parallel()
	for name, size := range map[string][2]int{
		"the usual one": {24, 80}, "a tall one": {60, 80}, "a narrow one": {24, 30}, "a flat one": {5, 80}, "a tiny one": {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			frame := busyScene().draw(size[0], size[1])
			if len(frame) > size[0]-1 {
				t.Errorf("%d lines of %d: the terminal would scroll", len(frame), size[0])
			}
			for _, line := range frame {
				if utf8.RuneCountInString(line) > size[1]-1 {
					t.Errorf("%q is longer than %d", line, size[1]-1)
				}
			}
		})
	}
	before := scene{store: "miniredis"}.draw(screenRows, screenColumns)
	if !strings.Contains(strings.Join(before, "\n"), "no sweeper now") {
		t.Errorf("before the start it shows %q", before)
	}
}

func TestARedrawGoesBackOverTheLastFrame(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	s := screen{w: &b}
	s.show([]string{"one", "two"})
	s.show([]string{"three"})
	if want := "\rone\x1b[K\n\rtwo\x1b[K\n\x1b[J" + "\x1b[2A\rthree\x1b[K\n\x1b[J"; b.String() != want {
		t.Errorf("wrote %q, want %q", b.String(), want)
	}
}

// aReport has one of everything.
func aReport() report {
	e := ordinary()
	e.strain = spread{900, 80 * time.Microsecond, 900 * time.Microsecond, 3 * time.Millisecond}
	r := report{verdict: judge(e), kills: e.kills, changes: 1, store: "redis-server 7.0.15", took: 31300 * time.Millisecond}
	r.lateAlone = spread{21, 120 * time.Millisecond, 1200 * time.Millisecond, 1300 * time.Millisecond}
	return r
}

func TestTheClosingTable(t *testing.T) {
	t.Parallel()
	var good, bad bytes.Buffer
	if err := aReport().table(&good); err != nil {
		t.Fatal(err)
	}
	golden(t, "held.golden", good.String())
	r := aReport()
	r.recovery[1], r.unhurt = never, 1
	r.broken = []string{"not all jobs of bess came back after its kill"}
	if err := r.table(&bad); err != nil {
		t.Fatal(err)
	}
	golden(t, "failed.golden", bad.String())
}

func TestTheClosingTableAsJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := aReport()
	r.recovery = append(r.recovery, never)
	if err := r.json(&b); err != nil {
		t.Fatal(err)
	}
	const want = `{"accepted":4,"delivered":3,"dead":1,"lost":0,"duplicates":2,"early":0,"recovery_ms":[2200,2500,null],` +
		`"lateness_ms":{"p50":3,"p99":3,"max":3},"lateness_after_sweeper_kill_ms":{"p50":120,"p99":1200,"max":1300},` +
		`"lateness_judged":true,"sweeper_changes":1,"store":"redis-server 7.0.15"}` + "\n"
	if b.String() != want {
		t.Errorf("json = %s, want %s", b.String(), want)
	}
	b.Reset()
	if err := (report{}).json(&b); err != nil || !json.Valid(b.Bytes()) || !strings.Contains(b.String(), `"recovery_ms":[]`) {
		t.Errorf("an empty report is %s, %v", b.String(), err)
	}
}
