package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelpiehq/kelpie/chaos/check"
	"github.com/kelpiehq/kelpie/chaos/history"
)

// Run does a whole run and judges it. It blocks until every process that it
// started is gone. A run that ctx cut short, or that something else ended before
// its time, is judged too: then both the result and the error are there. Without
// a result the error says why there was nothing to judge.
func Run(ctx context.Context, o Options) (*Result, error) {
	r, err := newRun(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &stage{run: r}
	err = s.perform(ctx)
	r.plan.Ended = time.Now()
	err = errors.Join(err, r.save())
	if r.plan.Begin == 0 {
		return nil, err
	}
	r.step("judging")
	result, fault := Check(o.Dir)
	err = errors.Join(err, fault)
	if result != nil {
		err = errors.Join(err, r.tidy(context.WithoutCancel(ctx), s, result.Verdict.Verdict != check.Fail))
	}
	return result, err
}

// run is the plan of a run and who is told of it.
type run struct {
	Options
	plan history.Run
	progress
}

// newRun draws the plan and makes the folder. It starts nothing.
func newRun(ctx context.Context, o Options) (*run, error) {
	if err := checkOptions(o); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir, o.Draw.Foreign = dir, o.Redis != ""
	plan, left, err := o.Scenario.Plan(o.Draw)
	if err != nil {
		return nil, err
	}
	build, err := askVersion(ctx, o.Kelpie)
	if err != nil {
		return nil, err
	}
	plan.Command, plan.Kelpie = o.Command, o.Kelpie
	plan.Version, plan.Commit, plan.Go, plan.System = build.Version, build.commit(), build.Go, system()
	plan.Started = time.Now()
	r := &run{Options: o, plan: plan}
	r.tell("scenario %s, seed %d: %s", plan.Scenario, plan.Seed, o.Scenario.Says)
	if len(left) > 0 {
		r.tell("left out, since the Redis is yours: %s", strings.Join(left, ", "))
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	return r, nil
}

// checkOptions refuses what would end in the middle of a set-up.
func checkOptions(o Options) error {
	if o.Scenario.Name == "" || o.Dir == "" || o.Kelpie == "" {
		return errors.New("chaos: needs a scenario, a folder and the path of a binary")
	}
	if _, err := os.Stat(filepath.Join(o.Dir, history.RunFile)); err == nil {
		return fmt.Errorf("folder %s holds an earlier run: choose another one, or remove it", o.Dir)
	}
	return nil
}

// save writes run.json as it is now.
func (r *run) save() error { return history.Save(filepath.Join(r.Dir, history.RunFile), r.plan) }

// tidy removes what nobody will look for: the data of the run's own Redis, or
// its keys in somebody else's.
func (r *run) tidy(ctx context.Context, s *stage, clean bool) error {
	if !clean {
		if r.Redis != "" {
			r.tell("the keys of the run are kept in your Redis, prefix %s", s.prefix)
		}
		return nil
	}
	if r.Redis == "" {
		var all error
		for _, dir := range s.data {
			all = errors.Join(all, os.RemoveAll(dir))
		}
		return all
	}
	return removeKeys(ctx, r.Redis, s.prefix)
}
