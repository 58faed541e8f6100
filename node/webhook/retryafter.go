package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter reads how long an answer asks to wait, at most limit. received is
// the time of the answer by our clock, used only where it has no Date of its
// own. It is false where the answer asks for nothing that can be read; a date
// that has passed asks for no wait at all.
func retryAfter(h http.Header, received time.Time, limit time.Duration) (wait time.Duration, ok bool) {
	for _, value := range h.Values("Retry-After") {
		asked, readable := seconds(value, limit)
		if !readable {
			asked, readable = untilDate(value, h.Get("Date"), received)
		}
		if readable {
			wait, ok = max(wait, min(asked, limit)), true
		}
	}
	return wait, ok
}

// seconds reads the form that is a whole number. More digits than fit ask for a
// long wait, not for none.
func seconds(value string, limit time.Duration) (time.Duration, bool) {
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n > int64(limit/time.Second) {
		return limit, true
	}
	return time.Duration(n) * time.Second, true
}

func untilDate(value, date string, received time.Time) (time.Duration, bool) {
	then, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if now, err := http.ParseTime(date); err == nil {
		received = now
	}
	return max(then.Sub(received), 0), true
}
