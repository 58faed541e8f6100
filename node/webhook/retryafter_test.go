package webhook

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	date := func(d time.Duration) string { return noon.Add(d).Format(http.TimeFormat) }
	for name, tt := range map[string]struct {
		values []string
		date   string // the answer's own
		want   time.Duration
		ok     bool
	}{
		"seconds":                               {[]string{"5"}, "", 5 * time.Second, true},
		"zero":                                  {[]string{"0"}, "", 0, true},
		"leading zeros":                         {[]string{"0005"}, "", 5 * time.Second, true},
		"more than a day is a day":              {[]string{"99999999"}, "", day, true},
		"more than fits is a day":               {[]string{"99999999999999999999999"}, "", day, true},
		"negative":                              {[]string{"-1"}, "", 0, false},
		"with a plus":                           {[]string{"+5"}, "", 0, false},
		"a fraction":                            {[]string{"1.5"}, "", 0, false},
		"an exponent":                           {[]string{"1e12"}, "", 0, false},
		"letters":                               {[]string{"abc"}, "", 0, false},
		"digits of another script":              {[]string{"٥"}, "", 0, false},
		"empty":                                 {[]string{""}, "", 0, false},
		"absent":                                {nil, "", 0, false},
		"a date by our clock":                   {[]string{date(10 * time.Second)}, "", 10 * time.Second, true},
		"a date counts from the answer's date":  {[]string{date(-time.Hour)}, date(-time.Hour - 10*time.Second), 10 * time.Second, true},
		"a clock that is ahead changes nothing": {[]string{date(time.Hour)}, date(time.Hour - 10*time.Second), 10 * time.Second, true},
		"an unreadable date of the answer":      {[]string{date(10 * time.Second)}, "yesterday", 10 * time.Second, true},
		"a date in the past":                    {[]string{date(-10 * time.Second)}, date(0), 0, true},
		"a date next year is a day":             {[]string{date(365 * day)}, date(0), day, true},
		"the old form of dates":                 {[]string{noon.Add(10 * time.Second).Format("Monday, 02-Jan-06 15:04:05 GMT")}, date(0), 10 * time.Second, true},
		"the oldest form of dates":              {[]string{noon.Add(10 * time.Second).Format(time.ANSIC)}, date(0), 10 * time.Second, true},
		"of two the longer":                     {[]string{"5", "7"}, "", 7 * time.Second, true},
		"of two the one that can be read":       {[]string{"soon", "7"}, "", 7 * time.Second, true},
		"seconds and a date":                    {[]string{"5", date(10 * time.Second)}, date(0), 10 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{"Retry-After": tt.values}
			if tt.date != "" {
				h.Set("Date", tt.date)
			}
			if got, ok := retryAfter(h, noon, day); got != tt.want || ok != tt.ok {
				t.Errorf("got %v, %v; want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestC156RetryAfterIsHonouredOnEveryAnswerThatIsTriedAgain(t *testing.T) {
	t.Parallel()
	date := func(d time.Duration) string { return noon.Add(d).Format(http.TimeFormat) }
	for name, tt := range map[string]struct {
		values []string
		wait   time.Duration // 0: the backoff alone
	}{
		"five seconds":       {[]string{"5"}, 5 * time.Second},
		"a date in 10 s":     {[]string{date(10 * time.Second)}, 10 * time.Second},
		"a date in the past": {[]string{date(-10 * time.Second)}, 0},
		"-1":                 {[]string{"-1"}, 0},
		"0":                  {[]string{"0"}, 0},
		"abc":                {[]string{"abc"}, 0},
		"1e12":               {[]string{"1e12"}, 0},
		"99999999":           {[]string{"99999999"}, 24 * time.Hour},
		"two headers":        {[]string{"5", "9"}, 9 * time.Second},
	} {
		for code, want := range map[int]fate{408: again, 425: again, 429: again, 500: again, 503: again, 200: delivered, 404: hopeless} {
			t.Run(name+" on "+strconv.Itoa(code), func(t *testing.T) {
				t.Parallel()
				r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header()["Retry-After"] = tt.values
					w.Header().Set("Date", date(0)) // years from our clock
					w.WriteHeader(code)
				})
				v := try(t, handler(t, Options{}), Request{URL: r.URL})
				wait := tt.wait
				if want != again {
					wait = 0
				}
				if v.fate != want || v.wait != wait {
					t.Errorf("fate %v after %v, want %v after %v", v.fate, v.wait, want, wait)
				}
			})
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"5", "-1", "1e12", "99999999999999999999", noon.Format(http.TimeFormat), noon.Format(time.ANSIC), "Sunday, 06-Nov-94 08:49:37 GMT", ""} {
		f.Add(seed, noon.Format(http.TimeFormat))
		f.Add("7", seed)
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		wait, ok := retryAfter(h, noon, time.Hour)
		if wait < 0 || wait > time.Hour || !ok && wait != 0 {
			t.Errorf("%q from %q: %v, %v", value, date, wait, ok)
		}
		if n, err := strconv.ParseUint(value, 10, 16); err == nil && (!ok || wait != min(time.Duration(n)*time.Second, time.Hour)) {
			t.Errorf("%q: %v, %v", value, wait, ok)
		}
	})
}
