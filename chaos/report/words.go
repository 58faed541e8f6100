package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// ceiling returns the next round number that is not below v, at least 1.
func ceiling(v float64) float64 {
	if v <= 1 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 4, 5, 6, 8} {
		if step*power >= v {
			return step * power
		}
	}
	return 10 * power
}

// short writes a number for an axis.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return trim(v/1e6) + "M"
	case v >= 1e4:
		return trim(v/1e3) + "k"
	}
	return trim(v)
}

// trim writes a number with at most two digits behind the point.
func trim(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// count writes a whole number in groups of three.
func count[T ~int | ~int64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	var b strings.Builder
	for i, r := range digits {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// took writes µs with three digits, or fewer if the others are zero.
func took(us int64) string {
	switch d := time.Duration(us) * time.Microsecond; {
	case us == 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", us)
	case d < time.Second:
		return digits(float64(us)/1e3) + " ms"
	case d < 2*time.Minute:
		return digits(float64(us)/1e6) + " s"
	default:
		return d.Round(time.Second).String()
	}
}

func digits(v float64) string {
	switch {
	case v < 10:
		return trim(v)
	case v < 100:
		return trim(math.Round(v*10) / 10)
	}
	return trim(math.Round(v))
}

// figure writes a measure: its name says the unit.
func figure(name string, v float64) string {
	switch {
	case strings.HasSuffix(name, "_ms"):
		return took(int64(math.Round(v * 1e3)))
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return count(int64(v))
	}
	return trim(v)
}

// clock writes a time of the run, in seconds where the run is short.
func clock(at, length int64) string {
	s := at / 1e6
	switch {
	case length <= 120e6:
		return fmt.Sprintf("%d s", s)
	case length < 3600e6:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// size writes bytes.
func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return trim(float64(n)/(1<<20)) + " MiB"
}

// cut bounds a text to most runes.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// plain takes out of a text what could move the cursor of a terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
