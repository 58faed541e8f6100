package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// How much of an answer is read, and kept with a failure.
const (
	excerptBytes = 1 << 10
	answerBytes  = 64 << 10 // a longer answer costs its connection
)

// answer is what a receiver said.
type answer struct {
	status  int
	header  http.Header
	at      time.Time // by our clock
	excerpt string    // the beginning of the body, printable
}

// verdict turns the answer into the result of the attempt.
func (a answer) verdict(maxRetryAfter time.Duration) verdict {
	switch {
	case a.status >= 200 && a.status <= 299:
		return verdict{fate: delivered}
	case a.status >= 300 && a.status <= 399:
		where := strings.TrimSpace(printable(clip(a.header.Get("Location"), 200)))
		return verdict{fate: hopeless, err: a.failure("redirects are not followed, Location: " + where)}
	case a.status == http.StatusGone:
		return verdict{fate: hopeless, err: a.failure("the receiver wants no more of it")}
	case !retryable(a.status):
		return verdict{fate: hopeless, err: a.failure("")}
	}
	if wait, asked := retryAfter(a.header, a.at, maxRetryAfter); asked && wait > 0 {
		return verdict{fate: again, wait: wait, err: a.failure("asks to wait " + wait.String())}
	}
	return verdict{fate: again, err: a.failure("")}
}

// retryable tells if another attempt may fare better. Codes that HTTP does not
// define count as 500, as its specification asks.
func retryable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

func (a answer) failure(remark string) error {
	text := fmt.Sprintf("answer %d %s", a.status, http.StatusText(a.status))
	text = strings.TrimSpace(text)
	if remark != "" {
		text += " (" + remark + ")"
	}
	if a.excerpt != "" {
		text += ": " + a.excerpt
	}
	return errors.New(text)
}

// readExcerpt reads body to its end or to a bound, so that its connection can be
// used again, and returns its beginning. A read error ends it: the status counts,
// and it is known.
func readExcerpt(body io.Reader) string {
	first, _ := io.ReadAll(io.LimitReader(body, excerptBytes+utf8.UTFMax))
	_, _ = io.CopyN(io.Discard, body, answerBytes)
	text := printable(string(first))
	if len(text) <= excerptBytes {
		return strings.TrimSpace(text)
	}
	return clip(text, excerptBytes) + " ... (cut at 1 KB)"
}

// printable returns text as valid UTF-8 without control characters but line
// breaks and tabs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) && r != '\n' || r >= 0x80 && r <= 0x9F {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// clip cuts text after at most n bytes, between two characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
