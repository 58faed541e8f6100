package queue

import (
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ParseURL turns redis://, rediss:// and unix:// addresses into options that
// suit a Client: no retries of the library's own (a repeat is ours to decide),
// short time-outs, contexts that count.
func ParseURL(address string) (*redis.Options, error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "redis: ")
		if errors.As(err, new(*url.Error)) { // its text has the whole address, password included
			why = "it is no URL"
		}
		return nil, fmt.Errorf("redis URL %q: %s; use redis://[user:password@]host:port[/db], rediss://... or unix://path%w",
			redact(address), why, bad)
	}
	o.MaxRetries = -1
	o.DialTimeout, o.DialerRetries = 2*time.Second, 1
	o.ReadTimeout, o.WriteTimeout = 3*time.Second, 3*time.Second
	o.ContextTimeoutEnabled = true
	o.PoolSize = or(o.PoolSize, 5*runtime.GOMAXPROCS(0))
	o.PipelinePoolSize = -1
	o.Protocol = 2 // answers are lists and strings; miniredis speaks it whole
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

// redact hides a password: all before the last "@" but the scheme, also where
// somebody forgot the scheme. What is no URL hides whole.
func redact(address string) string {
	scheme, _, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		scheme = ""
	}
	if _, err := url.Parse(address); err != nil {
		return clip(scheme, 20) + "://..."
	}
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		return clip(scheme, 20) + "://..." + clip(address[at:], 100)
	}
	return clip(address, 120)
}
