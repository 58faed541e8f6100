package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kelpiehq/kelpie/queue"
)

// queueView is the JSON of a queue.
type queueView struct {
	Queue           string     `json:"queue"`
	Waiting         int64      `json:"waiting"`
	Delayed         int64      `json:"delayed"`
	Active          int64      `json:"active"`
	Dead            int64      `json:"dead"`
	Paused          bool       `json:"paused"`
	OldestWaitingMS int64      `json:"oldest_waiting_ms"`
	Totals          totalsView `json:"totals"`
}

type totalsView struct {
	Enqueued  int64 `json:"enqueued"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Retried   int64 `json:"retried"`
	Stalled   int64 `json:"stalled"`
	Dead      int64 `json:"dead"`
	Cancelled int64 `json:"cancelled"`
	Stale     int64 `json:"stale"`
}

func viewQueue(q queue.QueueInfo) queueView {
	t := q.Totals
	return queueView{
		Queue: q.Name, Waiting: q.Waiting, Delayed: q.Delayed, Active: q.Active, Dead: q.Dead,
		Paused: q.Paused, OldestWaitingMS: q.OldestWaiting.Milliseconds(),
		Totals: totalsView{t.Enqueued, t.Completed, t.Failed, t.Retried, t.Stalled, t.Dead, t.Cancelled, t.Stale},
	}
}

var queueColumns = []string{"QUEUE", "WAITING", "DELAYED", "ACTIVE", "DEAD", "OLDEST", "ENQUEUED", "COMPLETED", "FAILED", "RETRIED", "STALLED"}

func queueRow(q queue.QueueInfo) []string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	name, oldest := q.Name, ""
	if q.Paused {
		name += " (paused)"
	}
	if q.Waiting > 0 {
		oldest = span(q.OldestWaiting)
	}
	return []string{
		name, n(q.Waiting), n(q.Delayed), n(q.Active), n(q.Dead), oldest,
		n(q.Totals.Enqueued), n(q.Totals.Completed), n(q.Totals.Failed), n(q.Totals.Retried), n(q.Totals.Stalled),
	}
}

func newQueues() *cobra.Command {
	var s space
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "queues [QUEUE...]",
		Short: "List the queues with their counts",
		Long: `List all queues, or those named, with how many jobs they hold in each state, how
long the oldest one waits, and what went through them since they exist.

A queue exists from its first job or its first node on. The JSON is an array of
{queue, waiting, delayed, active, dead, paused, oldest_waiting_ms (0 if nothing
waits), totals{enqueued, completed, failed, retried, stalled, dead, cancelled,
stale}}.`,
		Example: `  kelpie queues
  kelpie queues mail --json | jq '.[0].waiting'`,
		RunE: runs(func(cmd *cobra.Command, args []string) error {
			return listQueues(cmd, &s, args, newOutput(cmd, asJSON))
		}),
	}
	s.flags(cmd)
	jsonFlag(cmd, &asJSON, "a JSON array")
	return cmd
}

func listQueues(cmd *cobra.Command, s *space, names []string, out *output) error {
	if err := checkQueues(names); err != nil {
		return err
	}
	c, done, err := s.connect(cmd.Context(), reads)
	if err != nil {
		return err
	}
	defer done()
	infos, err := readQueues(cmd, c, names)
	if err != nil {
		return s.explain(err)
	}
	l := out.listing(queueColumns...)
	for _, q := range infos {
		if err := l.add(viewQueue(q), queueRow(q)...); err != nil {
			return err
		}
	}
	return l.end(cmd.ErrOrStderr(), "no queues yet: the first job makes one (kelpie enqueue --help)")
}

func checkQueues(names []string) error {
	for _, name := range names {
		if err := queue.CheckName("queue", name); err != nil {
			return usage("%w", err)
		}
	}
	return nil
}

func readQueues(cmd *cobra.Command, c *queue.Client, names []string) ([]queue.QueueInfo, error) {
	if len(names) == 0 {
		return c.Queues(cmd.Context())
	}
	var infos []queue.QueueInfo
	for _, name := range names {
		q, err := c.Queue(cmd.Context(), name)
		if errors.Is(err, queue.ErrNoQueue) {
			return nil, noQueue(name)
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, q)
	}
	return infos, nil
}

func noQueue(name string) error {
	return notFound(`"kelpie queues" lists them`, "no such queue: %s", name)
}
