package watch

import (
	"context"
	"fmt"
	"hash/maphash"
	"sort"
	"time"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/queue"
)

// logPage is how many entries are read in one step.
const logPage = 500

// logs are the logs that queue.Client reads.
type logs interface {
	ReadLog(ctx context.Context, queue string, from int64, most int) ([]queue.LogEntry, error)
	KeepLog(ctx context.Context, queue string, on bool) error
}

// tail follows one log.
type tail struct {
	logs  logs
	queue string
	page  int // entries read in one step, at least 2
	seed  maphash.Seed
	sums  []uint64 // of the entries read: the log as it is known
	unset bool     // Redis lost writes: maybe the log's switch as well
}

// follow writes the entries of all logs as they come.
func (c *Collector) follow(ctx context.Context, w *history.Writer) error {
	var tails []*tail
	for _, q := range append([]string{Whole}, c.Queues...) {
		tails = append(tails, &tail{logs: c.Space, queue: q, page: logPage, seed: maphash.MakeSeed()})
	}
	err := each(ctx, logEvery, func(ctx context.Context, _ time.Duration) error {
		for _, t := range tails {
			// What cannot be read now is asked for again, and at the end once more.
			if _, fatal := t.catchUp(ctx, w); fatal != nil {
				return fatal
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer stop()
	for _, t := range tails {
		away, fatal := t.catchUp(last, w)
		if fatal != nil {
			return fatal
		}
		if away != nil {
			return fmt.Errorf("the log of queue %s could not be read to its end: %w", t.queue, away)
		}
	}
	return nil
}

// catchUp reads a log to its end. away says why Redis did not let it, fatal why
// what was read could not be written.
func (t *tail) catchUp(ctx context.Context, w *history.Writer) (away, fatal error) {
	for {
		if t.unset {
			if err := t.logs.KeepLog(ctx, t.queue, true); err != nil {
				return err, nil
			}
			t.unset = false
		}
		more, steps, err := t.read(ctx)
		for _, s := range steps {
			if err := w.Write(s); err != nil {
				return nil, err
			}
		}
		if err != nil || !more {
			return err, nil
		}
	}
}

// read returns the next steps, also with an error; more says that there may be
// others behind them.
func (t *tail) read(ctx context.Context) (more bool, steps []history.Step, err error) {
	known := len(t.sums)
	from := max(known-1, 0)
	entries, err := t.logs.ReadLog(ctx, t.queue, int64(from), t.page)
	if err != nil && len(entries) == 0 {
		return false, nil, err
	}
	if known > 0 {
		if len(entries) == 0 || t.sum(entries[0]) != t.sums[from] {
			at, err := t.common(ctx)
			if err != nil {
				return false, nil, err
			}
			t.sums, t.unset = t.sums[:at], true
			return true, []history.Step{{T: history.Now(), Queue: t.queue, Index: int64(at), Back: true}}, nil
		}
		entries = entries[1:]
	}
	now := history.Now()
	for _, e := range entries {
		t.sums = append(t.sums, t.sum(e))
		steps = append(steps, step(t.queue, now, e))
	}
	return err == nil && len(entries) >= t.page-1, steps, err
}

func (t *tail) sum(e queue.LogEntry) uint64 { return maphash.String(t.seed, e.Raw) }

// common returns how many of the known entries are still there: what Redis keeps
// is a prefix of what it had, so halving finds its end. The last known entry is
// not among them.
func (t *tail) common(ctx context.Context) (int, error) {
	var broken error
	n := sort.Search(len(t.sums)-1, func(i int) bool {
		if broken != nil {
			return true
		}
		entries, err := t.logs.ReadLog(ctx, t.queue, int64(i), 1)
		if broken = err; err != nil {
			return true
		}
		return len(entries) == 0 || t.sum(entries[0]) != t.sums[i]
	})
	return n, broken
}

// step is an entry as the history has it.
func step(q string, now int64, e queue.LogEntry) history.Step {
	s := history.Step{
		T: now, Queue: q, Index: e.Index, US: e.At.UnixMicro(), Script: e.Script, Who: e.Who, Turn: e.Turn, Epoch: e.Epoch,
	}
	for _, m := range e.Moves {
		s.Moves = append(s.Moves, history.Move{
			What: m.What, ID: m.ID, From: string(m.From), To: string(m.To), Fence: m.Fence, Session: m.Session,
			Shown: m.Shown, Verb: m.Verb, Again: m.Again, Due: m.Due, Until: m.Until, Spent: m.Spent, Max: m.Max,
		})
	}
	return s
}
