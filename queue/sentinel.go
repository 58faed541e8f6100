package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// isSentinel reports an address of Sentinels, whatever else is wrong with it.
func isSentinel(address string) bool {
	return strings.HasPrefix(address, "redis+sentinel://") || strings.HasPrefix(address, "rediss+sentinel://")
}

// failover is a master by its name, and the Sentinels that know where it is.
type failover struct {
	master    string
	sentinels []string
	user      string // of the Sentinels
	password  string
	server    *redis.Options // of the servers
}

const sentinelPort = "26379"

// parseSentinel reads redis+sentinel://[user:password@]host:port,.../MASTER[/db][?options].
// A URL has one host, so the list is taken out before the rest is read as the
// address of a server.
func parseSentinel(address string) (*failover, error) {
	scheme, rest, _ := strings.Cut(address, "://")
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	userinfo, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		userinfo, hosts = authority[:at+1], authority[at+1:]
	}
	f := &failover{}
	var db string
	f.master, db, _ = strings.Cut(path, "/")
	switch {
	case f.master == "":
		return nil, badURL(address, "the name of the master is missing")
	case !printable(f.master):
		return nil, badURL(address, "the name of the master must be printable, without spaces")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		addr, ok := sentinelAddr(host)
		if !ok {
			return nil, badURL(address, "each Sentinel must be host or host:port")
		}
		f.sentinels = append(f.sentinels, addr)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, badURL(address, "what follows the ? is not understood")
	}
	f.user, f.password = values.Get("sentinel_username"), values.Get("sentinel_password")
	values.Del("sentinel_username")
	values.Del("sentinel_password")
	server := strings.TrimSuffix(scheme, "+sentinel") + "://" + userinfo + f.sentinels[0] + "/" + db
	if len(values) > 0 {
		server += "?" + values.Encode()
	}
	if f.server, err = serverOptions(server); err != nil {
		return nil, badURL(address, reasonOf(err))
	}
	if f.server.TLSConfig != nil {
		f.server.TLSConfig.ServerName = "" // that of whom is dialled
	}
	return f, nil
}

// sentinelAddr adds the usual port to a host without one.
func sentinelAddr(host string) (string, bool) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), sentinelPort
	}
	return net.JoinHostPort(name, port), name != "" && port != "" && printable(name) && !strings.ContainsAny(name, "@/?")
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// connect follows the master: go-redis hears of a switch from the Sentinels,
// drops its connections and asks them again before it dials.
func (f *failover) connect(tune []func(*redis.Options)) *redis.Client {
	for _, t := range tune {
		t(f.server)
	}
	o := f.server
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: f.master, SentinelAddrs: f.sentinels, SentinelUsername: f.user, SentinelPassword: f.password,
		Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig, ClientName: o.ClientName,
		MaxRetries: o.MaxRetries, DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout, MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns,
		MaxActiveConns: o.MaxActiveConns, ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
		PipelinePoolSize: o.PipelinePoolSize, Protocol: o.Protocol, DisableIdentity: o.DisableIdentity,
	})
	rdb.AddHook(search{f.master})
	return rdb
}

// search names what went wrong on the way to the master. That no Sentinel knows
// the name is an empty answer to a question of the library's own: passed on as
// it is, it would be taken for an empty answer of Redis, such as "no such job".
type search struct{ master string }

func (h search) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		switch kind, _ := explain(err); {
		case err == nil || kind == ErrRefused || errors.Is(err, redis.ErrClosed):
			return conn, err
		case errors.Is(err, redis.Nil):
			err = fmt.Errorf("no Sentinel knows a master %q", h.master)
		default:
			err = errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "redis: "), "\n", "; "))
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
}

func (search) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (search) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
