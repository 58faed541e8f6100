package queue

import (
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
		return nil, fmt.Errorf("redis URL %q: %s; use redis://[user:password@]host:port[/db], rediss://... or unix://path%w",
			redact(address), strings.TrimPrefix(err.Error(), "redis: "), bad)
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

// redact hides a password; what is no URL hides whole.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		scheme, _, _ := strings.Cut(address, "://")
		return clip(scheme, 20) + "://..."
	}
	return u.Redacted()
}
