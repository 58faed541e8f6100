package node

import (
	"context"
	"time"

	"github.com/kelpiehq/kelpie/queue"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are what /metrics shows. Labels are bounded: queues and kinds are
// those of this node's configuration, anything else is "other".
type metrics struct {
	n        *Node
	registry *prometheus.Registry
	attempts *prometheus.CounterVec   // by queue, kind, outcome
	stale    *prometheus.CounterVec   // refused settlements
	wait     *prometheus.HistogramVec // due to start
	run      *prometheus.HistogramVec
	noKind   *prometheus.CounterVec
	ignored  *prometheus.CounterVec
}

var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

func newMetrics(n *Node) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "kelpie", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "kelpie", Name: name, Help: help, Buckets: seconds}, []string{"queue", "kind"})
	}
	m := &metrics{
		n: n, registry: prometheus.NewRegistry(),
		attempts: counter("attempts_total", "Attempts that this node ended, by outcome.", "queue", "kind", "outcome"),
		stale:    counter("stale_total", "Results of this node that were refused because another attempt had the job.", "queue"),
		wait:     histogram("wait_seconds", "Time from due to start of an attempt, by Redis's clock."),
		run:      histogram("run_seconds", "Time that handlers took."),
		noKind:   counter("unserved_total", "Claims of kinds without a handler here.", "queue"),
		ignored:  counter("overruns_total", "Handlers that ignored the end of their context.", "queue", "kind"),
	}
	m.registry.MustRegister(m.attempts, m.stale, m.wait, m.run, m.noKind, m.ignored, &gauges{n: n},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// kind bounds the label: a kind without a handler may be anything.
func (m *metrics) kind(c *queue.Claim) string {
	if m.n.handlers[c.Kind] == nil {
		return "other"
	}
	return c.Kind
}

func (m *metrics) started(c *queue.Claim, now time.Time) {
	since := c.EnqueuedAt
	if c.DueAt.After(since) {
		since = c.DueAt
	}
	if c.Attempt == 1 { // later attempts are due when their backoff is over, which is not kept
		m.wait.WithLabelValues(c.Queue, m.kind(c)).Observe(max(now.Sub(since), 0).Seconds())
	}
}

func (m *metrics) ended(a *attempt) {
	m.run.WithLabelValues(a.claim.Queue, m.kind(a.claim)).Observe(time.Since(a.began).Seconds())
}

func (m *metrics) settled(s *queue.Settlement, v queue.Verdict) {
	c := s.Claim()
	if v != queue.Settled {
		m.stale.WithLabelValues(c.Queue).Inc()
		return
	}
	m.attempts.WithLabelValues(c.Queue, m.kind(c), s.Verb.String()).Inc()
}

func (m *metrics) unserved(c *queue.Claim) { m.noKind.WithLabelValues(c.Queue).Inc() }
func (m *metrics) overrun(c *queue.Claim)  { m.ignored.WithLabelValues(c.Queue, m.kind(c)).Inc() }

// gauges are read when they are asked for.
type gauges struct{ n *Node }

var (
	queueJobs = prometheus.NewDesc("kelpie_queue_jobs", "Jobs in Redis by queue and state.", []string{"queue", "state"}, nil)
	queueAge  = prometheus.NewDesc("kelpie_queue_oldest_waiting_seconds", "How long the oldest waiting job has waited.", []string{"queue"}, nil)
	jobTotal  = prometheus.NewDesc("kelpie_queue_jobs_total", "Moves of jobs since Redis has this queue.", []string{"queue", "move"}, nil)
	slots     = prometheus.NewDesc("kelpie_workers", "Handlers that this node runs at most.", nil, nil)
	active    = prometheus.NewDesc("kelpie_active", "Handlers that run on this node.", nil, nil)
	sweeping  = prometheus.NewDesc("kelpie_sweeper", "1 if this node is the sweeper.", nil, nil)
	epoch     = prometheus.NewDesc("kelpie_sweeper_epoch", "Epoch of this node's last term as sweeper.", nil, nil)
	memberNum = prometheus.NewDesc("kelpie_gossip_members", "Members that gossip sees, this node included.", nil, nil)
	redisUp   = prometheus.NewDesc("kelpie_redis_up", "1 if Redis answers this node.", nil, nil)
)

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueJobs, queueAge, jobTotal, slots, active, sweeping, epoch, memberNum, redisUp} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(slots, float64(g.n.cfg.Workers))
	in := g.n.current.Load()
	if in == nil { // gossip may not be there yet, either
		gauge(redisUp, 0)
		return
	}
	gauge(memberNum, float64(len(g.n.members())))
	gauge(active, float64(in.active()))
	st := in.sweeper.Stats()
	gauge(sweeping, boolean(st.Sweeping))
	gauge(epoch, float64(st.Epoch))
	gauge(redisUp, boolean(g.n.redis.ready() == nil))
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for _, q := range g.n.cfg.Queues {
		info, err := g.n.redis.data.Queue(ctx, q.Name)
		if err != nil {
			continue
		}
		g.queue(ch, gauge, info)
	}
}

func (g *gauges) queue(ch chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string), q queue.QueueInfo) {
	for state, n := range map[queue.State]int64{
		queue.Waiting: q.Waiting, queue.Delayed: q.Delayed, queue.Active: q.Active, queue.Dead: q.Dead,
		queue.Completed: q.Completed, queue.Cancelled: q.Cancelled,
	} {
		gauge(queueJobs, float64(n), q.Name, string(state))
	}
	gauge(queueAge, q.OldestWaiting.Seconds(), q.Name)
	t := q.Totals
	for move, n := range map[string]int64{
		"enqueued": t.Enqueued, "completed": t.Completed, "failed": t.Failed, "retried": t.Retried, "stalled": t.Stalled,
		"dead": t.Dead, "cancelled": t.Cancelled, "stale": t.Stale, "promoted": t.Promoted, "revived": t.Revived,
		"dropped": t.Dropped, "orphans": t.Orphans, "strays": t.Strays, "claimed": t.Claimed,
	} {
		ch <- prometheus.MustNewConstMetric(jobTotal, prometheus.CounterValue, float64(n), q.Name, move)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
