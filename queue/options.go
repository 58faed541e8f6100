package queue

import (
	"fmt"
	"math"
	"time"
)

// Defaults of a job.
const (
	DefaultPriority    = 5
	DefaultMaxAttempts = 3
	DefaultTimeout     = 30 * time.Minute
)

// Limits of a job's options. Later due times than MaxDue are refused.
const (
	MaxMaxAttempts = 1_000_000
	maxWait        = 100 * 365 * 24 * time.Hour
)

// MaxDue is the last due time that can be asked for.
var MaxDue = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)

// JobOptions say how one job runs. The zero value suits most.
type JobOptions struct {
	Queue        string        // default "default"
	ID           string        // chosen by the caller, known for 10 min after the job's end; default a UUIDv7
	Delay        time.Duration // due that long after Redis stored it; 0: now
	At           time.Time     // due then, compared with Redis's clock to the millisecond; not with Delay
	Priority     *int          // 0 to 9, 9 runs first; default 5; see Priority
	MaxAttempts  int           // attempts that may be spent; default 3
	Backoff      Backoff       // wait between attempts; default attempts² seconds
	Timeout      time.Duration // of one attempt; default 30 min
	Retention    time.Duration // how long a completed or cancelled job stays to be looked at, 10 min at least with an ID; default not at all
	WaitReplicas int           // replicas that must have the job before Enqueue returns; default none
}

// Priority returns p for JobOptions, where 0 is a priority and not "unsaid".
func Priority(p int) *int { return &p }

// merge lays later options over earlier ones, field by field.
func merge(all []JobOptions) (m JobOptions) {
	for _, o := range all {
		override(&m.Queue, o.Queue)
		override(&m.ID, o.ID)
		override(&m.Delay, o.Delay)
		override(&m.At, o.At)
		override(&m.Priority, o.Priority)
		override(&m.MaxAttempts, o.MaxAttempts)
		override(&m.Backoff, o.Backoff)
		override(&m.Timeout, o.Timeout)
		override(&m.Retention, o.Retention)
		override(&m.WaitReplicas, o.WaitReplicas)
		if o.Delay != 0 && o.At.IsZero() {
			m.At = time.Time{}
		}
		if !o.At.IsZero() && o.Delay == 0 {
			m.Delay = 0
		}
	}
	return m
}

func override[T comparable](to *T, from T) {
	var zero T
	if from != zero {
		*to = from
	}
}

// check names the first field outside its rule, and fills in the defaults.
func (o *JobOptions) check() error {
	o.Queue = or(o.Queue, DefaultQueue)
	o.MaxAttempts = or(o.MaxAttempts, DefaultMaxAttempts)
	o.Timeout = or(o.Timeout, DefaultTimeout)
	if o.Priority == nil {
		o.Priority = Priority(DefaultPriority)
	}
	if err := CheckName("queue", o.Queue); err != nil {
		return err
	}
	if o.ID != "" {
		if err := CheckID(o.ID); err != nil {
			return err
		}
	}
	switch {
	case o.Delay != 0 && !o.At.IsZero():
		return fmt.Errorf("delay %v and at %v: give one of them%w", o.Delay, o.At, bad)
	case o.Delay < 0:
		return fmt.Errorf("delay %v: must not be negative%w", o.Delay, bad)
	case o.Delay > maxWait:
		return fmt.Errorf("delay %v: must be at most 100 years%w", o.Delay, bad)
	case !o.At.IsZero() && o.At.Before(time.UnixMilli(0)):
		return fmt.Errorf("at %v: must not be before 1970%w", o.At.UTC().Format(time.RFC3339), bad)
	case o.At.After(MaxDue):
		return fmt.Errorf("at %v: must not be after %v%w", o.At, MaxDue.Format(time.RFC3339), bad)
	case *o.Priority < 0 || *o.Priority > 9:
		return fmt.Errorf("priority %d: must be 0 to 9%w", *o.Priority, bad)
	case o.MaxAttempts < 1 || o.MaxAttempts > MaxMaxAttempts:
		return fmt.Errorf("max attempts %d: must be 1 to %d%w", o.MaxAttempts, MaxMaxAttempts, bad)
	case o.Timeout < time.Millisecond || o.Timeout > maxWait:
		return fmt.Errorf("timeout %v: must be 1ms to 100 years%w", o.Timeout, bad)
	case o.Retention < 0 || o.Retention > maxWait:
		return fmt.Errorf("retention %v: must be 0 to 100 years%w", o.Retention, bad)
	case o.WaitReplicas < 0 || o.WaitReplicas > math.MaxInt16:
		return fmt.Errorf("wait replicas %d: must be 0 to %d%w", o.WaitReplicas, math.MaxInt16, bad)
	}
	return o.Backoff.check()
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
