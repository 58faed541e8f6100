package watch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// fakeLog is a log in memory. It can lose its end, and be away.
type fakeLog struct {
	entries []string
	away    error
	reads   int
	kept    int
}

func (f *fakeLog) ReadLog(_ context.Context, _ string, from int64, most int) (out []queue.LogEntry, err error) {
	f.reads++
	for i := from; f.away == nil && i < int64(len(f.entries)) && len(out) < most; i++ {
		out = append(out, queue.LogEntry{Index: i, Script: f.entries[i], Raw: f.entries[i]})
	}
	return out, f.away
}

func (f *fakeLog) KeepLog(context.Context, string, bool) error {
	f.kept++
	return f.away
}

// page is small, so that little is needed to fill some.
const page = 5

// followed is a tail of it that writes into a folder.
type followed struct {
	*tail
	w   *history.Writer
	dir string
}

func follow(t interface {
	Fatal(...any)
	Helper()
}, dir string, f *fakeLog) *followed {
	t.Helper()
	w, err := history.Append(filepath.Join(dir, history.LogFile))
	if err != nil {
		t.Fatal(err)
	}
	return &followed{tail: &tail{logs: f, queue: "mail", page: page, seed: maphash.MakeSeed()}, w: w, dir: dir}
}

// told replays the steps.
func told(steps []history.Step) (entries []string, backs int, err error) {
	for _, s := range steps {
		if s.Back {
			if s.Index >= int64(len(entries)) {
				return nil, 0, fmt.Errorf("back to %d of %d entries", s.Index, len(entries))
			}
			entries, backs = entries[:s.Index], backs+1
			continue
		}
		if s.Index != int64(len(entries)) {
			return nil, 0, fmt.Errorf("entry %d after %d", s.Index, len(entries))
		}
		entries = append(entries, s.Script)
	}
	return entries, backs, nil
}

func numbers(name string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(name, i))
	}
	return out
}

func TestLostWritesAreNoticed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after []string
		back          int // -1: nothing was lost
	}{
		"a log that grows lost nothing":             {numbers("a", 3), numbers("a", 17), -1},
		"nor did one that stands still":             {numbers("a", 3), numbers("a", 3), -1},
		"nor one that is still empty":               {nil, numbers("a", 3), -1},
		"the last one is gone":                      {numbers("a", 3), numbers("a", 2), 2},
		"the last one is another":                   {numbers("a", 3), append(numbers("a", 2), "b"), 2},
		"many are gone and more have come":          {numbers("a", 12), append(numbers("a", 3), numbers("b", 20)...), 3},
		"all are gone":                              {numbers("a", 12), nil, 0},
		"all are gone and others have come":         {numbers("a", 12), numbers("b", 12), 0},
		"the only one is another":                   {numbers("a", 1), numbers("b", 1), 0},
		"fewer have come than were lost, on a page": {numbers("a", 10), append(numbers("a", 4), "b"), 4},
		"the loss begins where the last page began": {numbers("a", 10), append(numbers("a", 8), "b", "c"), 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &fakeLog{entries: tt.before}
			f := follow(t, t.TempDir(), log)
			defer f.w.Close()
			for _, entries := range [][]string{tt.before, tt.after} {
				log.entries = entries
				if away, fatal := f.catchUp(t.Context(), f.w); away != nil || fatal != nil {
					t.Fatal(away, fatal)
				}
			}
			steps := kept[history.Step](t, f.dir, history.LogFile)
			got, backs, err := told(steps)
			if err != nil || !slices.Equal(got, tt.after) {
				t.Fatalf("%v; %d entries, want %d", err, len(got), len(tt.after))
			}
			if backs != min(1, tt.back+1) || log.kept != backs {
				t.Errorf("%d steps back, the switch was set %d times", backs, log.kept)
			}
			for _, s := range steps {
				if s.Back && (s.Index != int64(tt.back) || s.Queue != "mail" || s.T == 0) {
					t.Errorf("back to %d, want %d: %+v", s.Index, tt.back, s)
				}
			}
		})
	}
}

func TestWhateverIsLostTheStepsTellTheLog(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		log := &fakeLog{}
		f := follow(t, filepath.Join(dir, fmt.Sprint(n)), log)
		defer f.w.Close()
		written := 0
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			if len(log.entries) > 0 && rapid.Bool().Draw(t, "lost") {
				log.entries = slices.Clone(log.entries[:rapid.IntRange(0, len(log.entries)-1).Draw(t, "kept")])
			}
			for range rapid.SampledFrom([]int{0, 1, page - 1, page, 2*page + 1}).Draw(t, "new") {
				written++
				log.entries = append(log.entries, fmt.Sprint(written))
			}
			log.away = nil
			if rapid.IntRange(0, 3).Draw(t, "away") == 0 {
				log.away = errors.New("Redis is away")
			}
			away, fatal := f.catchUp(context.Background(), f.w)
			if fatal != nil || away != log.away {
				t.Fatal(away, fatal)
			}
			if log.away == nil && len(f.sums) != len(log.entries) {
				t.Fatalf("%d entries are known, the log has %d", len(f.sums), len(log.entries))
			}
		}
		log.away = nil
		if away, fatal := f.catchUp(context.Background(), f.w); away != nil || fatal != nil {
			t.Fatal(away, fatal)
		}
		got, _, err := told(steps(t, f.dir))
		if err != nil || !slices.Equal(got, log.entries) {
			t.Fatalf("the steps tell %v, %v; the log is %v", got, err, log.entries)
		}
	})
}

// steps reads a folder's log for a test of rapid's.
func steps(t *rapid.T, dir string) []history.Step {
	var out []history.Step
	if err := history.Save(filepath.Join(dir, history.RunFile), history.Run{}); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, h.Steps...)
}

func TestTheEndOfAPrefixIsFoundInFewReads(t *testing.T) {
	t.Parallel()
	log := &fakeLog{entries: numbers("a", 5000)}
	f := follow(t, t.TempDir(), log)
	defer f.w.Close()
	for range 2 {
		if away, fatal := f.catchUp(t.Context(), f.w); away != nil || fatal != nil {
			t.Fatal(away, fatal)
		}
	}
	log.entries, log.reads = log.entries[:10], 0
	if away, fatal := f.catchUp(t.Context(), f.w); away != nil || fatal != nil {
		t.Fatal(away, fatal)
	}
	if log.reads > 16 {
		t.Errorf("%d reads for a log of 5000", log.reads)
	}
}

func TestAFileThatCannotBeWrittenEndsTheTail(t *testing.T) {
	t.Parallel()
	f := follow(t, t.TempDir(), &fakeLog{entries: numbers("a", 3)})
	if err := f.w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, fatal := f.catchUp(t.Context(), f.w); fatal == nil {
		t.Error("nobody noticed")
	}
}

func TestAStepHasAllThatTheEntryHas(t *testing.T) {
	t.Parallel()
	e := queue.LogEntry{Index: 4, Script: "exchange", Who: "n1-x", Turn: 5, Epoch: 6, Moves: []queue.LogMove{{
		What: "settle", ID: "j", From: "active", To: "delayed", Fence: 1, Session: "s", Shown: 2, Verb: "R", Again: true,
		Due: 3, Until: 4, Spent: 5, Max: 6,
	}}}
	want := history.Move{
		What: "settle", ID: "j", From: "active", To: "delayed", Fence: 1, Session: "s", Shown: 2, Verb: "R", Again: true,
		Due: 3, Until: 4, Spent: 5, Max: 6,
	}
	s := step("mail", 9, e)
	if len(s.Moves) != 1 || s.Moves[0] != want {
		t.Errorf("moves %+v", s.Moves)
	}
	if s.T != 9 || s.Queue != "mail" || s.Index != 4 || s.US != e.At.UnixMicro() || s.Script != "exchange" || s.Who != "n1-x" || s.Turn != 5 || s.Epoch != 6 {
		t.Errorf("step %+v", s)
	}
}
