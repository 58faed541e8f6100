package redistest

import "fmt"

// Option changes how a Dedicated server is started. Without any it keeps
// nothing on disk.
type Option func(*config)

type config struct {
	args     []string
	password string
	err      error
}

// WithAOF makes the server keep an append-only file, synced to disk as fsync
// says: "always" or "everysec".
func WithAOF(fsync string) Option {
	return func(c *config) {
		if fsync != "always" && fsync != "everysec" {
			c.err = fmt.Errorf("WithAOF(%q): must be always or everysec", fsync)
		}
		c.args = append(c.args, "--appendonly", "yes", "--appendfsync", fsync)
	}
}

// WithArgs sets parameters of redis.conf, as name and value in turn:
// WithArgs("maxmemory", "1gb"). The clients of a server with a requirepass know
// the password.
func WithArgs(pairs ...string) Option {
	return func(c *config) {
		if len(pairs)%2 != 0 {
			c.err = fmt.Errorf("WithArgs(%q): must be pairs of a name and a value", pairs)
			return
		}
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == "requirepass" {
				c.password = pairs[i+1]
			}
			c.args = append(c.args, "--"+pairs[i], pairs[i+1])
		}
	}
}
