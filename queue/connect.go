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

// Connect returns a connection pool for an address: redis://, rediss:// (TLS),
// unix://, or redis+sentinel:// and rediss+sentinel:// for a master that
// Sentinels know:
//
//	redis://[user:password@]host:port[/db]
//	redis+sentinel://[user:password@]host:port,host:port,host:port/MASTER[/db]
//
// Its settings suit a Client: no retries of the library's own (a repeat is ours
// to decide), short time-outs, contexts that count. tune may change them. User
// and password are those of the servers; those of the Sentinels stand in
// ?sentinel_username=...&sentinel_password=.... Nothing is dialled yet; the
// pool is the caller's to close.
func Connect(address string, tune ...func(*redis.Options)) (*redis.Client, error) {
	if isSentinel(address) {
		f, err := parseSentinel(address)
		if err != nil {
			return nil, err
		}
		return f.connect(tune), nil
	}
	o, err := ParseURL(address)
	if err != nil {
		return nil, err
	}
	for _, t := range tune {
		t(o)
	}
	return redis.NewClient(o), nil
}

// CheckURL says in one sentence what is wrong with an address for Connect. It
// repeats no password.
func CheckURL(address string) error {
	if isSentinel(address) {
		_, err := parseSentinel(address)
		return err
	}
	_, err := ParseURL(address)
	return err
}

// Endpoints returns where an address leads first, without its secrets: the
// server, or the Sentinels. network is tcp or unix.
func Endpoints(address string) (network string, addrs []string, err error) {
	if isSentinel(address) {
		f, err := parseSentinel(address)
		if err != nil {
			return "", nil, err
		}
		return "tcp", f.sentinels, nil
	}
	o, err := ParseURL(address)
	if err != nil {
		return "", nil, err
	}
	return o.Network, []string{o.Addr}, nil
}

// ParseURL turns redis://, rediss:// and unix:// addresses into the options that
// Connect uses.
func ParseURL(address string) (*redis.Options, error) {
	if isSentinel(address) {
		return nil, badURL(address, "Sentinels are no server; Connect follows them")
	}
	o, err := serverOptions(address)
	if err != nil {
		return nil, badURL(address, reasonOf(err))
	}
	return o, nil
}

func serverOptions(address string) (*redis.Options, error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
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

func badURL(address, why string) error {
	return fmt.Errorf("redis URL %q: %s; use redis://[user:password@]host:port[/db], rediss://..., unix://path or redis+sentinel://host:port,.../MASTER%w",
		redact(address), why, bad)
}

// reasonOf drops what may hold the whole address, password included.
func reasonOf(err error) string {
	if errors.As(err, new(*url.Error)) {
		return "it is no URL"
	}
	return strings.TrimPrefix(err.Error(), "redis: ")
}

// redact hides a password: all before the last "@" but the scheme, also where
// somebody forgot the scheme. What is no URL hides whole.
func redact(address string) string {
	scheme, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		scheme = ""
	}
	if isSentinel(address) { // a list of hosts is no host to a URL
		rest, _, _ = strings.Cut(rest, "?")
		return scheme + "://..." + clip(rest[strings.LastIndexByte(rest, '@')+1:], 100)
	}
	if _, err := url.Parse(address); err != nil {
		return clip(scheme, 20) + "://..."
	}
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		return clip(scheme, 20) + "://..." + clip(address[at:], 100)
	}
	return clip(address, 120)
}
