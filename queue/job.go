package queue

import "time"

// Job is one attempt as a handler sees it. It belongs to the handler.
type Job[In any] struct {
	Info
	In In // the decoded payload
}

// Info describes the job and this attempt of it.
type Info struct {
	ID, Kind, Queue string
	Attempt         int   // 1 + the attempts spent so far
	MaxAttempts     int   // that may be spent
	Fence           int64 // rises with every claim of the queue: for side effects of the handler's own
	Priority        int   // 0 to 9, 9 runs first
	EnqueuedAt      time.Time
	DueAt           time.Time     // first due time; EnqueuedAt where none was given
	Timeout         time.Duration // of this attempt
	Payload         []byte        // as it was enqueued, to the bit
}
