package traffic

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kelpiehq/kelpie/chaos/history"
	"github.com/kelpiehq/kelpie/chaos/work"
)

// number is the N of an item's next call, counted from now on.
func (p *producer) number(it Item) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := it.N + p.tries[it.N]*p.total
	p.tries[it.N]++
	return n
}

// item is the item of a call, and its try from 0.
func (p *producer) item(n int) (item, try int) { return (n-1)%p.total + 1, (n - 1) / p.total }

// resume learns from client.jsonl what an earlier process of this number has
// done: what it began and did not end is unknown.
func (p *producer) resume(plan []Item) error {
	f, err := os.Open(filepath.Join(p.Dir, history.ClientFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	last := map[int]ending{} // by item, of its last call
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var op history.Op
		if json.Unmarshal(lines.Bytes(), &op) != nil || op.Client != p.name || op.N < 1 {
			continue // torn, or another's
		}
		item, try := p.item(op.N)
		p.tries[item] = max(p.tries[item], try+1)
		e := ending{called: true, phase: op.Phase, final: op.Error == work.Exists}
		if op.Phase == history.Invoke {
			e.phase = history.Unknown
		}
		if last[item] = e; op.ID != "" && op.Verb == Enqueue {
			p.ids[item] = op.ID
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", history.ClientFile, err)
	}
	for _, it := range plan {
		if e, begun := last[it.N]; begun {
			p.done[it.N] = !p.again(it, e)
		}
	}
	return nil
}
