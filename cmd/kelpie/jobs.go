package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kelpiehq/kelpie/queue"
)

func newJobs() *cobra.Command {
	return group(&cobra.Command{
		Use:   "jobs",
		Short: "Look at jobs, and move them in time",
		Example: `  kelpie jobs list --queue mail --state delayed
  kelpie jobs show 01920d9e-3a6b-7c1e-9f00-5a1b2c3d4e5f
  kelpie jobs reschedule 01920d9e-3a6b-7c1e-9f00-5a1b2c3d4e5f --delay 10m`,
	}, newJobsList(), newJobsShow(), newJobsReschedule())
}

// selection says which jobs a list shows.
type selection struct {
	queue  string
	states []queue.State
	limit  *int
}

func newJobsList() *cobra.Command {
	var s space
	var sel selection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs by queue and state, without their payloads",
		Long: `List the jobs of all queues or of one, in all states or in some: waiting ones in
the order in which they run, delayed ones by due time, ended ones by their end.
Completed and cancelled jobs are known only as long as their retention says.

The JSON is an array of what "jobs show" prints, with payload_size in place of the
payload. A list of any length is written as it is read.`,
		Example: `  kelpie jobs list --queue mail --state waiting,delayed
  kelpie jobs list --state dead --json | jq -r '.[].id'`,
		Args: exactly(0, ""),
		RunE: runs(func(cmd *cobra.Command, _ []string) error {
			return listJobs(cmd, &s, sel, newOutput(cmd, asJSON), "no such jobs")
		}),
	}
	s.flags(cmd)
	sel.flags(cmd)
	cmd.Flags().Var(&list[queue.State]{v: &sel.states, word: "STATES", parse: parseState}, "state",
		"only these states: waiting, delayed, active, completed, dead, cancelled (default all)")
	jsonFlag(cmd, &asJSON, "a JSON array")
	return cmd
}

func (sel *selection) flags(cmd *cobra.Command) {
	cmd.Flags().VarP(nameFlag(&sel.queue, "queue", ""), "queue", "q", "only this queue (default all)")
	cmd.Flags().Var(intFlag(&sel.limit, func(n int64) error {
		if n < 0 {
			return errors.New("must be a whole number, 0 or more")
		}
		return nil
	}), "limit", "at most so many jobs (default all)")
}

func parseState(s string) (queue.State, error) {
	if !slices.Contains(queue.States, queue.State(s)) {
		all := make([]string, len(queue.States))
		for i, state := range queue.States {
			all[i] = string(state)
		}
		return "", fmt.Errorf("must be one of %s", strings.Join(all, ", "))
	}
	return queue.State(s), nil
}

func listJobs(cmd *cobra.Command, s *space, sel selection, out *output, empty string) error {
	ctx := cmd.Context()
	c, done, err := s.connect(ctx, reads)
	if err != nil {
		return err
	}
	defer done()
	queues, err := sel.queues(ctx, c)
	if err != nil {
		return s.explain(err)
	}
	states := sel.states
	if len(states) == 0 {
		states = queue.States
	}
	l := out.listing(jobColumns...)
	for _, q := range queues {
		for _, state := range states {
			for r, err := range c.Jobs(ctx, q, state) {
				if err != nil {
					_ = out.flush()
					return s.explain(err)
				}
				if sel.limit != nil && l.n >= *sel.limit {
					return l.end(cmd.ErrOrStderr(), empty)
				}
				if err := l.add(jobItem{headOf(r), r.PayloadSize, failuresOf(r)}, jobRow(r)...); err != nil {
					return err
				}
			}
		}
	}
	return l.end(cmd.ErrOrStderr(), empty)
}

// queues returns the one that was named, if it exists, else all.
func (sel selection) queues(ctx context.Context, c *queue.Client) ([]string, error) {
	names, err := c.QueueNames(ctx)
	if err != nil || sel.queue == "" {
		return names, err
	}
	if !slices.Contains(names, sel.queue) {
		return nil, noQueue(sel.queue)
	}
	return []string{sel.queue}, nil
}

func newJobsShow() *cobra.Command {
	var s space
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one job with its payload and errors",
		Long: `Show one job. Without --queue all queues are asked for it.

The JSON is one object: id, kind, queue, state, attempts, failures, stalls,
max_attempts, priority, enqueued_at, due_at, finished_at (RFC 3339 with
milliseconds, or null), payload (as it stands, if it is JSON) or payload_base64,
errors[]{attempt, at, node, reason, error} (newest first, at most 10).`,
		Example: `  kelpie jobs show 01920d9e-3a6b-7c1e-9f00-5a1b2c3d4e5f
  kelpie jobs show order-17 --queue mail --json | jq .payload`,
		Args: exactly(1, "the id of a job"),
		RunE: runs(func(cmd *cobra.Command, args []string) error {
			return showJob(cmd, &s, name, args[0], newOutput(cmd, asJSON))
		}),
	}
	s.flags(cmd)
	cmd.Flags().VarP(nameFlag(&name, "queue", ""), "queue", "q", "queue of the job (default: look in all)")
	jsonFlag(cmd, &asJSON, "a JSON object")
	return cmd
}

func showJob(cmd *cobra.Command, s *space, name, id string, out *output) error {
	if err := queue.CheckID(id); err != nil {
		return usage("%w", err)
	}
	c, done, err := s.connect(cmd.Context(), reads)
	if err != nil {
		return err
	}
	defer done()
	r, err := findJob(cmd.Context(), c, name, id)
	if err != nil {
		return s.explain(err)
	}
	if out.json {
		b, err := jobJSON(r)
		if err != nil {
			return err
		}
		return out.object(b)
	}
	jobText(out.w, r)
	return out.flush()
}

// findJob looks in one queue, or in all.
func findJob(ctx context.Context, c *queue.Client, name, id string) (r queue.Record, err error) {
	if name == "" {
		r, err = c.Find(ctx, id)
	} else {
		r, err = c.Job(ctx, name, id)
	}
	if errors.Is(err, queue.ErrNoJob) {
		return r, noJob(name, id)
	}
	return r, err
}

func noJob(name, id string) error {
	where := "in any queue"
	if name != "" {
		where = "in queue " + name
	}
	return notFound("a job that completed is forgotten at once, unless it was enqueued with --retention",
		"no such job %s: %s", where, id)
}

func newJobsReschedule() *cobra.Command {
	var s space
	var name string
	var delay time.Duration
	var at time.Time
	var asJSON bool
	given := durationFlag(&delay, "")
	when := timeFlag(&at)
	cmd := &cobra.Command{
		Use:   "reschedule ID (--delay DURATION | --at TIME)",
		Short: "Give a waiting or delayed job another due time",
		Long: `Move a waiting or delayed job to another due time, counted by Redis's clock, and
print that time. A job that is active or has ended cannot be moved (exit 1).

The JSON is one object: id, queue, due_at.`,
		Example: `  kelpie jobs reschedule order-17 --delay 10m
  kelpie jobs reschedule order-17 --at 2027-01-31T08:30:00.250Z`,
		Args: exactly(1, "the id of a job"),
		RunE: runs(func(cmd *cobra.Command, args []string) error {
			if !given.given && !when.given {
				return usage("the new due time is missing: give --delay or --at")
			}
			return rescheduleJob(cmd, &s, name, args[0], delay, at, newOutput(cmd, asJSON))
		}),
	}
	s.flags(cmd)
	cmd.Flags().VarP(nameFlag(&name, "queue", ""), "queue", "q", "queue of the job (default: look in all)")
	cmd.Flags().Var(given, "delay", "due that long from now, such as 90s or 1h30m; 0 is at once")
	cmd.Flags().Var(when, "at", "due at that time, such as 2027-01-31T08:30:00.250Z")
	either(cmd, "delay", "at")
	jsonFlag(cmd, &asJSON, "a JSON object")
	return cmd
}

// dueView is the JSON of a job that was moved.
type dueView struct {
	ID    string `json:"id"`
	Queue string `json:"queue"`
	DueAt moment `json:"due_at"`
}

func rescheduleJob(cmd *cobra.Command, s *space, name, id string, delay time.Duration, at time.Time, out *output) error {
	if err := queue.CheckID(id); err != nil {
		return usage("%w", err)
	}
	c, done, err := s.connect(cmd.Context(), writes)
	if err != nil {
		return err
	}
	defer done()
	if name == "" {
		r, err := findJob(cmd.Context(), c, "", id)
		if err != nil {
			return s.explain(err)
		}
		name = r.Queue
	}
	due, err := c.Reschedule(cmd.Context(), name, id, delay, at)
	if errors.Is(err, queue.ErrNoJob) {
		return noJob(name, id)
	}
	if err != nil {
		return s.explain(err)
	}
	if out.json {
		return out.object(dueView{id, name, moment{due}})
	}
	_ = out.print(moment{due}.String(), "\n")
	return out.flush()
}
