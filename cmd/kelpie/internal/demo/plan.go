package demo

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// answer is how the receiver treats one arrival.
type answer struct {
	status     int
	retryAfter int           // seconds, 0: not said
	wait       time.Duration // before it answers
}

// willing tells if the receiver takes the webhook.
func (a answer) willing() bool { return a.status >= 200 && a.status < 300 }

// final tells if no later attempt can change it.
func (a answer) final() bool {
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return a.status >= 400 && a.status < 500
}

var taken = answer{status: http.StatusOK}

// plan is what happens to one webhook.
type plan struct {
	letter  letter
	delay   time.Duration // 0: at once
	answers []answer      // to its first arrivals
	then    answer        // to all later ones
}

// refused tells if the receiver will refuse it for good.
func (p plan) refused() bool { return p.then.final() }

// answer returns what the receiver says to arrival n, counted from 0.
func (p plan) answer(n int) answer {
	if n < len(p.answers) {
		return p.answers[n]
	}
	return p.then
}

// mood is how the receiver treats what comes: the share of webhooks, 0 to 1,
// that get a treatment.
type mood struct {
	slow, fails, busy, failsTwice, refuses float64
}

// moodAt keeps the slow ones at about 4 a second whatever the rate is, most of
// them without delay, so that a kill hits running jobs and slots stay free.
func moodAt(perSecond float64) mood {
	few := min(25/perSecond, 1)
	return mood{slow: 0.28 * few, fails: 0.08 * few, busy: 0.06 * few, failsTwice: 0.02 * few, refuses: 0.04 * few}
}

// Slow answers take this long; the rest a moment.
const (
	slowest = 3 * time.Second
	slow    = time.Second
	moment  = 15 * time.Millisecond
)

// plan draws the fate of a letter. A delayed one is rarely slow: it shows how
// late it is, not how many slots it fills.
func (m mood) plan(rng *rand.Rand, l letter, delay time.Duration) plan {
	p := plan{letter: l, delay: delay, then: taken}
	quick := answer{status: http.StatusOK, wait: time.Duration(rng.Int64N(int64(moment)))}
	slowShare := m.slow
	if delay > 0 {
		slowShare /= 4
	}
	switch x := rng.Float64(); {
	case x < slowShare:
		p.answers = []answer{{status: http.StatusOK, wait: slow + time.Duration(rng.Int64N(int64(slowest-slow)))}}
		return p
	case x < slowShare+m.fails:
		p.answers = []answer{{status: http.StatusInternalServerError}}
	case x < slowShare+m.fails+m.busy:
		p.answers = []answer{{status: http.StatusTooManyRequests, retryAfter: 1}}
	case x < slowShare+m.fails+m.busy+m.failsTwice:
		p.answers = []answer{{status: http.StatusInternalServerError}, {status: http.StatusServiceUnavailable}}
	case x < slowShare+m.fails+m.busy+m.failsTwice+m.refuses:
		p.then = answer{status: []int{http.StatusGone, http.StatusBadRequest, http.StatusUnprocessableEntity}[rng.IntN(3)]}
		return p
	}
	p.answers = append(p.answers, quick)
	return p
}
