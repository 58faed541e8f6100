package life

import (
	"fmt"
	"iter"
	"maps"

	"github.com/kelpiehq/kelpie/chaos/history"
)

// Cluster is the name under which sessions and epochs are logged.
const Cluster = "cluster"

// Space is all queues and the sessions of a job space. It is not safe for
// concurrent use.
type Space struct {
	workers int
	queues  map[string]*Queue
}

// New returns an empty space of nodes with so many workers each; 0 is no bound.
func New(workers int) *Space { return &Space{workers: workers, queues: map[string]*Queue{}} }

// Queue returns a queue, or nil if no step told of it.
func (s *Space) Queue(name string) *Queue { return s.queues[name] }

// Queues returns all queues by name, Cluster among them.
func (s *Space) Queues() iter.Seq2[string, *Queue] { return maps.All(s.queues) }

// Apply does the next step and returns what is wrong with it. Steps of one queue
// must come in the order of its log; those of different queues in any.
func (s *Space) Apply(step history.Step) []Violation {
	q := s.queues[step.Queue]
	if q == nil {
		q = newQueue(step.Queue)
		s.queues[step.Queue] = q
	}
	q.step, q.wrong = step, nil
	switch {
	case step.Back && step.Index > q.next:
		q.broke(Hole, "", "Redis lost the log from entry %d on, but only %d were read", step.Index, q.next)
	case step.Back:
		q.back(step.Index)
	default:
		if step.Index != q.next {
			q.broke(Hole, "", "entry %d was expected", q.next)
		}
		q.next = step.Index + 1
		q.journal.begin(step.Index, q.counts)
		q.sender()
		q.sweep()
		claims := 0
		for _, m := range step.Moves {
			if m.What == history.Claim {
				claims++
			}
			q.move(m)
		}
		if s.workers > 0 && claims > s.workers {
			q.broke(Slots, step.Who, "%d claims in one call, with %d workers", claims, s.workers)
		}
	}
	return q.wrong
}

// broke notes a violation of the current step.
func (q *Queue) broke(rule, id, text string, args ...any) {
	q.wrong = append(q.wrong, Violation{
		Rule: rule, Queue: q.name, ID: id, Index: q.step.Index, US: q.step.US, Text: fmt.Sprintf(text, args...),
	})
}
