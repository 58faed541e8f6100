package report

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/fault"
	"github.com/kelpiehq/kelpie/chaos/history"
)

func TestRatesCountEachEventOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Int64Range(second, 3600*second).Draw(t, "length")
		at := rapid.SliceOfN(rapid.Int64Range(0, length), 1, 200).Draw(t, "at")
		points := rates(at, length)
		if len(points) > 202 {
			t.Fatalf("%d points", len(points))
		}
		wide := points[0].at
		if len(points) > 1 {
			wide = points[1].at
		}
		sum := 0.0
		for i, p := range points {
			took := wide
			if i == len(points)-1 {
				took = min(wide, max(length-p.at, wide/10))
			}
			if len(points) == 1 {
				took = length
			}
			sum += p.value * float64(took) / 1e6
		}
		if int(sum+.5) != len(at) {
			t.Fatalf("%v of %d events", sum, len(at))
		}
	})
}

func TestTheSeriesFollowTheSamples(t *testing.T) {
	t.Parallel()
	sample := func(at, active int64, sweeper string, epoch int64) history.Sample {
		return history.Sample{T: 100 + at, Jobs: map[string]int64{"active": active}, Sweeper: sweeper, Epoch: epoch, Members: map[string]int{"n1": 3, "n2": 5, "n3": 4}}
	}
	silent := history.Sample{T: 130, Error: "timeout"}
	h := &history.History{Run: history.Run{Begin: 100}, Samples: []history.Sample{
		sample(-50, 1, "s1", 7), sample(10, 2, "s1", 7), sample(20, 3, "s2", 8), silent, sample(40, 4, "", 8), sample(5_000_000, 5, "s3", 9),
	}}
	s := seriesOf(h, NewDocument(h, &check.Verdict{}))
	if s.length != 5_000_000 {
		t.Errorf("the run is %d µs long", s.length)
	}
	if want := []point{{0, 1, false}, {10, 2, false}, {20, 3, false}, {30, 0, true}, {40, 4, false}, {5_000_000, 5, false}}; !slices.Equal(s.active, want) {
		t.Errorf("active: %v, want %v", s.active, want)
	}
	if s.least[0].value != 3 || s.most[0].value != 5 || !s.least[3].gap {
		t.Errorf("members: %v and %v", s.least, s.most)
	}
	if want := []term{{0, 20, "s1", 7}, {20, 40, "s2", 8}, {40, 5_000_000, "", 8}, {5_000_000, 5_000_000, "s3", 9}}; !slices.Equal(s.terms, want) {
		t.Errorf("terms: %v, want %v", s.terms, want)
	}
	if rows, all := termRows(s, map[string]string{"s2": "n2"}); all != 3 || rows[1].Node != "n2" || rows[2].Node != "s3" {
		t.Errorf("rows of terms: %v of %d", rows, all)
	}
}

func TestSettlementsAreTimedByRedis(t *testing.T) {
	t.Parallel()
	step := history.Step{T: 9000, US: 5500, Moves: []history.Move{{What: history.Settle}, {What: history.Claim}, {What: history.Settle}}}
	h := &history.History{Steps: []history.Step{step}, Clock: history.NewClock([]history.Tick{{T: 1000, After: 1000, US: 5000}})}
	if got := settlements(h, 1000); !slices.Equal(got, []int64{500, 500}) {
		t.Errorf("with both clocks compared: %v", got)
	}
	h.Clock = nil
	if got := settlements(h, 1000); !slices.Equal(got, []int64{8000, 8000}) {
		t.Errorf("without: %v", got)
	}
}

func TestNodesAreNamedByTheirClaimsAndStrikes(t *testing.T) {
	t.Parallel()
	h := &history.History{
		Steps:   []history.Step{{Queue: "q", Moves: []history.Move{{What: history.Claim, Fence: 7, Session: "s1"}}}, {Queue: "r", Moves: []history.Move{{What: history.Claim, Fence: 7, Session: "s2"}}}},
		Marks:   []history.Mark{{Queue: "q", Fence: 7, Node: "n1"}, {Queue: "q", Fence: 8, Node: "n9"}},
		Strikes: []history.Strike{{Session: "s3", Target: "n3"}},
	}
	got := names(h, &check.Verdict{Kills: []check.Recovery{{Session: "s4", Node: "n4"}}})
	if want := map[string]string{"s1": "n1", "s3": "n3", "s4": "n4"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAThinLineKeepsGapsAndEnds(t *testing.T) {
	t.Parallel()
	var line []point
	for i := range int64(1000) {
		line = append(line, point{at: i, value: float64(i), gap: i >= 500 && i < 600})
	}
	got := thin(line, 100)
	if len(got) != 10 || got[0].value != 99 || !got[5].gap || got[6].at != 600 || got[9].value != 999 {
		t.Errorf("%d points: %v", len(got), got)
	}
}

func TestBandsCoverTheirFaultsAndAreFew(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawing{length: 3600 * second}
		var all []Fault
		for range rapid.IntRange(0, 50).Draw(t, "faults") {
			from := rapid.Int64Range(0, d.length).Draw(t, "from")
			all = append(all, Fault{Kind: "kill", Begin: from, End: from + rapid.Int64Range(0, 100*second).Draw(t, "long")})
		}
		bands := d.bands(all, ofProcess)
		for i := 1; i < len(bands); i++ {
			if bands[i].from <= bands[i-1].to {
				t.Fatalf("bands touch: %v", bands)
			}
		}
		for _, f := range all {
			if !slices.ContainsFunc(bands, func(b band) bool { return b.from <= d.x(f.Begin) && d.x(f.End) <= b.to && b.to-b.from >= 2 }) {
				t.Fatalf("no band covers %+v: %v", f, bands)
			}
		}
		if len(d.bands(all, ofRedis)) != 0 {
			t.Fatal("a kill is no fault of Redis")
		}
	})
}

func TestEachFamilyHasKindsThatExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, k := range fault.Kinds() {
		known[k.Name] = true
	}
	for _, name := range slices.Concat(redisKinds, processKinds) {
		if !known[name] {
			t.Errorf("no kind of fault is called %q", name)
		}
	}
}

func TestStagesAddUpToTheRecovery(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kill check.Recovery
		want stages
	}{
		"each stage is known":              {check.Recovery{Noticed: 10, Condemned: 30, Running: 60}, stages{10, 20, 30, 60}},
		"nobody was seen to notice":        {check.Recovery{Condemned: 30, Running: 60}, stages{0, 30, 30, 60}},
		"nobody had to condemn":            {check.Recovery{Noticed: 10, Running: 60}, stages{10, 0, 50, 60}},
		"it was noticed after it was over": {check.Recovery{Noticed: 90, Condemned: 95, Running: 60}, stages{60, 0, 0, 60}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := stagesOf(tt.kill)
			if got != tt.want || got.noticed+got.condemned+got.running != got.total {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	if got := spreads([]check.Recovery{{Running: 5, RedisUp: true}, {Running: 5, Free: true}, {RedisUp: true, Free: true}}); got != nil {
		t.Errorf("kills that do not count were counted: %v", got)
	}
}

func TestOfManyKillsTheSlowestAreShown(t *testing.T) {
	t.Parallel()
	v := &check.Verdict{}
	for i := range int64(mostKills * 2) {
		v.Kills = append(v.Kills, check.Recovery{N: int(i), T: i, Running: 1000 + i*7919%1000, RedisUp: true, Free: i%10 != 0})
	}
	rows := killRows(NewDocument(&history.History{}, v))
	if len(rows) != mostKills || !slices.IsSortedFunc(rows, func(a, b killRow) int { return int(a.T - b.T) }) {
		t.Fatalf("%d rows, or not in the order of time", len(rows))
	}
	slowest := int64(0)
	for _, k := range v.Kills {
		if k.Free && !slices.ContainsFunc(rows, func(r killRow) bool { return r.N == k.N }) {
			slowest = max(slowest, k.Running)
		}
	}
	for _, r := range rows {
		if !r.counted || r.Recovery.Running < slowest {
			t.Errorf("kill %d is shown, a slower one is not", r.N)
		}
	}
}

func TestQuantileTakesTheNearestRank(t *testing.T) {
	t.Parallel()
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(100 - i)
	}
	for _, tt := range []struct {
		values  []int64
		percent int
		want    int64
	}{{nil, 50, 0}, {[]int64{7}, 50, 7}, {[]int64{9, 1}, 50, 1}, {[]int64{9, 1}, 51, 9}, {hundred, 95, 95}, {hundred, 100, 100}, {hundred, 0, 1}} {
		if got := quantile(tt.values, tt.percent); got != tt.want {
			t.Errorf("quantile %d of %v is %d, want %d", tt.percent, tt.values, got, tt.want)
		}
	}
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{took(0), "0 s"}, {took(999), "999 µs"}, {took(1000), "1 ms"}, {took(12_345), "12.3 ms"}, {took(999_400), "999 ms"}, {took(2_345_678), "2.35 s"}, {took(119_000_000), "119 s"}, {took(3_725_000_000), "1h2m5s"},
		{count(0), "0"}, {count(999), "999"}, {count(1000), "1,000"}, {count(int64(-1234567)), "-1,234,567"},
		{figure(check.LateMax, .4), "400 µs"}, {figure("lost", 12345), "12,345"}, {figure("throughput", 1.239), "1.24"},
		{short(0), "0"}, {short(2.5), "2.5"}, {short(9999), "9999"}, {short(20_000), "20k"}, {short(1.5e6), "1.5M"},
		{clock(90e6, 100e6), "90 s"}, {clock(90e6, 600e6), "1:30"}, {clock(3690e6, 7200e6), "1:01:30"},
		{size(512 << 10), "512 KiB"}, {size(3 << 19), "1.5 MiB"},
		{cut("äöü", 3), "äöü"}, {cut("äöüß", 3), "äö…"},
		{nameOf("0199-abcdefgh", nil), "…abcdefgh"}, {nameOf("s", nil), "s"}, {nameOf("s", map[string]string{"s": "n1"}), "n1"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestAxesHaveRoomAndFewMarks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(0, 1e12).Draw(t, "v")
		if top := ceiling(v); top < v || top < 1 || v > 1 && top > v*2.01 {
			t.Fatalf("ceiling(%v) is %v", v, top)
		}
		length := rapid.Int64Range(second, 365*24*3600*second).Draw(t, "length")
		if marks := length / tick(length); marks > 12 {
			t.Fatalf("%s needs %d marks", fmt.Sprint(length), marks)
		}
	})
}
