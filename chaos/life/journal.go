package life

// journal remembers what each step replaced, so that the last ones can be taken
// back. It grows with the log.
type journal struct {
	steps   []mark
	jobs    []oldJob
	senders []oldSender
}

// mark is the state before a step: the counts, and how long the lists were.
type mark struct {
	index         int64
	counts        counts
	jobs, senders int
}

type oldJob struct {
	id    string
	job   Job
	known bool
}

type oldSender struct {
	name   string
	sender sender
	known  bool
}

func (j *journal) begin(index int64, c counts) {
	j.steps = append(j.steps, mark{index, c, len(j.jobs), len(j.senders)})
}

func (j *journal) job(id string, old Job, known bool) {
	j.jobs = append(j.jobs, oldJob{id, old, known})
}

func (j *journal) sender(name string, old sender, known bool) {
	j.senders = append(j.senders, oldSender{name, old, known})
}

// back returns the queue to what it was before the entry of that index.
func (q *Queue) back(index int64) {
	j := &q.journal
	for n := len(j.steps) - 1; n >= 0 && j.steps[n].index >= index; n-- {
		before := j.steps[n]
		for i := len(j.jobs) - 1; i >= before.jobs; i-- {
			restore(q.jobs, j.jobs[i].id, j.jobs[i].job, j.jobs[i].known)
		}
		for i := len(j.senders) - 1; i >= before.senders; i-- {
			restore(q.senders, j.senders[i].name, j.senders[i].sender, j.senders[i].known)
		}
		j.steps, j.jobs, j.senders = j.steps[:n], j.jobs[:before.jobs], j.senders[:before.senders]
		q.counts = before.counts
	}
	q.next, q.blind = index, q.blind || index == 0
}

func restore[T any](to map[string]T, key string, old T, known bool) {
	if known {
		to[key] = old
	} else {
		delete(to, key)
	}
}
