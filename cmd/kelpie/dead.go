package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kelpiehq/kelpie/queue"
)

func newDead() *cobra.Command {
	return group(&cobra.Command{
		Use:   "dead",
		Short: "Look at dead jobs, and give them another life",
		Example: `  kelpie dead list --queue mail
  kelpie dead retry order-17
  kelpie dead retry --queue mail --all`,
	}, newDeadList(), newDeadRetry())
}

func newDeadList() *cobra.Command {
	var s space
	var asJSON bool
	sel := selection{states: []queue.State{queue.Dead}}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the dead jobs with why they died, oldest first",
		Long: `List the jobs that will not run again: attempts spent, refused by the handler, or
undecodable. They stay until they are retried; of more than 100,000 a queue the
oldest ones are dropped, which the log of the sweeper tells.

The JSON is an array as of "kelpie jobs list".`,
		Example: `  kelpie dead list
  kelpie dead list --queue mail --json | jq -r '.[] | [.id, .errors[0].error] | @tsv'`,
		Args: exactly(0, ""),
		RunE: runs(func(cmd *cobra.Command, _ []string) error {
			return listJobs(cmd, &s, sel, newOutput(cmd, asJSON), "no dead jobs")
		}),
	}
	s.flags(cmd)
	sel.flags(cmd)
	jsonFlag(cmd, &asJSON, "a JSON array")
	return cmd
}

func newDeadRetry() *cobra.Command {
	var s space
	var name string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "retry (ID... | --all)",
		Short: "Move dead jobs back to waiting with all attempts anew",
		Long: `Move dead jobs back to waiting; their attempts count anew. Prints the ids that
were moved, one a line; what could not be moved is named on stderr, and the exit
code is 1, or 66 if none of the ids is known. Without --queue all queues are asked.

The JSON is an array of {id, queue} or {id, error}.`,
		Example: `  kelpie dead retry order-17 order-18
  kelpie dead retry --queue mail --all`,
		RunE: runs(func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usage("give the ids of dead jobs, or --all")
			}
			for _, id := range args {
				if err := queue.CheckID(id); err != nil {
					return usage("%w", err)
				}
			}
			return retryDead(cmd, &s, name, args, newOutput(cmd, asJSON))
		}),
	}
	s.flags(cmd)
	cmd.Flags().VarP(nameFlag(&name, "queue", ""), "queue", "q", "queue of the jobs (default: look in all)")
	cmd.Flags().BoolVar(&all, "all", false, "every dead job, of --queue or of all queues")
	jsonFlag(cmd, &asJSON, "a JSON array")
	return cmd
}

// retriedView is the JSON of one job that was, or was not, moved.
type retriedView struct {
	ID    string `json:"id"`
	Queue string `json:"queue,omitempty"`
	Error string `json:"error,omitempty"`
}

func retryDead(cmd *cobra.Command, s *space, name string, ids []string, out *output) error {
	ctx := cmd.Context()
	c, done, err := s.connect(ctx, writes)
	if err != nil {
		return err
	}
	defer done()
	out.strict = true
	r := &retry{cmd: cmd, s: s, c: c, l: out.listing()}
	if len(ids) == 0 {
		err = r.queues(ctx, name)
	} else {
		err = r.ids(ctx, name, ids)
	}
	if err != nil {
		return r.cut(out, err)
	}
	return r.end(out)
}

// retry counts what became of the jobs.
type retry struct {
	cmd           *cobra.Command
	s             *space
	c             *queue.Client
	l             *listing
	moved, failed int
	missing       int // of the failed: not known
}

// queues retries all dead jobs of one queue or of all. It takes the ids first:
// there are at most 100,000 a queue, and those that die meanwhile are not meant.
func (r *retry) queues(ctx context.Context, name string) error {
	queues, err := selection{queue: name}.queues(ctx, r.c)
	if err != nil {
		return r.s.explain(err)
	}
	for _, q := range queues {
		var ids []string
		for job, err := range r.c.Jobs(ctx, q, queue.Dead) {
			if err != nil {
				return r.s.explain(err)
			}
			ids = append(ids, job.ID)
		}
		for len(ids) > 0 {
			n := min(len(ids), queue.ReviveBatch)
			if err := r.revive(ctx, q, ids[:n]); err != nil {
				return err
			}
			ids = ids[n:]
		}
	}
	return nil
}

// ids retries jobs that were named, each in its queue.
func (r *retry) ids(ctx context.Context, name string, ids []string) error {
	for _, id := range ids {
		job, err := findJob(ctx, r.c, name, id)
		switch {
		case codeOf(err) == exitNotFound:
			r.missing++
			err = r.refuse(id, err)
		case err != nil:
			return r.s.explain(err)
		case job.State != queue.Dead:
			err = r.refuse(id, fmt.Errorf("job %s is %s, not dead", id, job.State))
		default:
			err = r.revive(ctx, job.Queue, []string{id})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *retry) revive(ctx context.Context, q string, ids []string) error {
	for _, res := range r.c.Revive(ctx, q, ids) {
		err := res.Err
		switch {
		case err == nil:
			r.moved++
			err = r.tell(retriedView{ID: res.ID, Queue: q})
		case errors.Is(err, queue.ErrNoJob):
			err = r.refuse(res.ID, fmt.Errorf("job %s is not dead any more", res.ID))
		default:
			return r.s.explain(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refuse names a job that was not moved.
func (r *retry) refuse(id string, err error) error {
	r.failed++
	fmt.Fprintln(r.cmd.ErrOrStderr(), "kelpie:", err)
	if !r.l.out.json {
		return nil
	}
	return r.tell(retriedView{ID: id, Error: err.Error()})
}

func (r *retry) tell(v retriedView) error {
	if r.l.out.json {
		return r.l.add(v)
	}
	return r.l.out.print(v.ID, "\n")
}

// cut is the end of a run that Redis or stdout stopped.
func (r *retry) cut(out *output, err error) error {
	_ = out.flush()
	if r.moved == 0 {
		return err
	}
	return withCode(exitFailed, fmt.Errorf("%w; stopped with %d jobs moved", err, r.moved))
}

func (r *retry) end(out *output) error {
	if out.json {
		if err := r.l.end(r.cmd.ErrOrStderr(), ""); err != nil {
			return err
		}
	}
	if err := out.flush(); err != nil {
		return err
	}
	switch {
	case r.failed == 0 && r.moved == 0:
		fmt.Fprintln(r.cmd.ErrOrStderr(), "no dead jobs")
		return nil
	case r.failed == 0:
		return nil
	case r.missing == r.failed && r.moved == 0:
		return silent{notFound("", "none of the jobs is known")}
	}
	return silent{failed("%d of %d jobs were not moved", r.failed, r.failed+r.moved)}
}
