package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Growth is how the wait between attempts grows.
type Growth string

// Quadratic waits Base·attempts², Exponential Base·2^(attempts-1), Constant Base.
const (
	Quadratic   Growth = "q"
	Exponential Growth = "e"
	Constant    Growth = "c"
)

// Backoff is the wait between two attempts, plus up to 10 % so that jobs which
// failed together do not come back together; never less. The zero value waits 1,
// 4, 9, ... seconds.
type Backoff struct {
	Growth Growth        // default Quadratic
	Base   time.Duration // default 1 s
	Max    time.Duration // default, and at most, 24 h; jitter included
}

const maxBackoff = 24 * time.Hour

func (b Backoff) filled() Backoff {
	return Backoff{or(b.Growth, Quadratic), or(b.Base, time.Second), or(b.Max, maxBackoff)}
}

func (b Backoff) check() error {
	b = b.filled()
	switch {
	case b.Growth != Quadratic && b.Growth != Exponential && b.Growth != Constant:
		return fmt.Errorf("backoff growth %q: must be q, e or c%w", b.Growth, bad)
	case b.Base < time.Millisecond || b.Base > maxBackoff:
		return fmt.Errorf("backoff base %v: must be 1ms to 24h%w", b.Base, bad)
	case b.Max < b.Base || b.Max > maxBackoff:
		return fmt.Errorf("backoff max %v: must be the base %v to 24h%w", b.Max, b.Base, bad)
	}
	return nil
}

// Delay returns the wait after so many spent attempts, without jitter. It does
// not overflow.
func (b Backoff) Delay(spent int) time.Duration {
	b = b.filled()
	n, factor := float64(max(spent, 1)), 1.0
	switch b.Growth {
	case Quadratic:
		factor = n * n
	case Exponential:
		factor = math.Pow(2, n-1)
	}
	if d := float64(b.Base) * factor; d < float64(b.Max) {
		return time.Duration(d)
	}
	return b.Max
}

// jittered returns Delay and up to 10 % more, at most Max.
func (b Backoff) jittered(spent int) time.Duration {
	d := b.Delay(spent)
	return min(d+rand.N(d/10+1), b.filled().Max)
}

// String is the form kept in a job's header: empty for the default.
func (b Backoff) String() string {
	b = b.filled()
	if b == (Backoff{}).filled() {
		return ""
	}
	return fmt.Sprintf("%s%d,%d", b.Growth, b.Base.Milliseconds(), b.Max.Milliseconds())
}

func parseBackoff(s string) (Backoff, error) {
	if s == "" {
		return Backoff{}, nil
	}
	base, most, ok := strings.Cut(s[1:], ",")
	b, errBase := strconv.ParseInt(base, 10, 40)
	m, errMax := strconv.ParseInt(most, 10, 40)
	out := Backoff{Growth(s[:1]), time.Duration(b) * time.Millisecond, time.Duration(m) * time.Millisecond}
	if !ok || errBase != nil || errMax != nil || out.check() != nil {
		return Backoff{}, fmt.Errorf("backoff %q: not understood", s)
	}
	return out, nil
}
