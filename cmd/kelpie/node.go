package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/kelpiehq/kelpie/node"
	"github.com/kelpiehq/kelpie/node/webhook"
	"github.com/kelpiehq/kelpie/queue"
)

const nodeHelp = `Run a node: it joins the others, takes jobs from its queues and runs them, and is
ready to become the one that sweeps. It needs nothing but a Redis; nodes of one
--prefix find each other through it.

Built in is the kind "webhook", HTTP delivery with retries. Its payload is {"url",
"method", "headers", "body" or "body_text" or "body_base64", "timeout_ms"}.
Addresses that are not public are refused unless --webhook-allow names their
network.

The first SIGINT or SIGTERM drains: no new jobs, --drain-timeout for those that
run, then they are handed back with their attempts untouched; exit 0. The second
hands back at once; exit 130 or 143. A third ends the process where it stands.

The log goes to stderr, as text to a terminal, else as JSON.`

const nodeExample = `  kelpie node
  kelpie node --queues mail=3,reports --workers 50 --http 127.0.0.1:9746
  kelpie node --webhook-allow 10.0.0.0/8 --state-dir /var/lib/kelpie
  KELPIE_REDIS=rediss://user:secret@redis.example.com:6380 kelpie node --name eu-1`

// nodeFlags are the flags of a node.
type nodeFlags struct {
	space
	config  node.Config
	webhook webhook.Options
	workers *int
	level   zerolog.Level
	chaos   string
}

func newNode() *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:     "node",
		Short:   "Run a node",
		Long:    nodeHelp,
		Example: nodeExample,
		Args:    exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.run(cmd); err != nil {
				return ran{err}
			}
			return nil
		},
	}
	f.space.flags(cmd)
	f.workFlags(cmd)
	f.herdFlags(cmd)
	cmd.Flags().StringVar(&f.chaos, "chaos", "", "`FOLDER` of a chaos run: serve its kind, keep its ledger, obey its links")
	_ = cmd.Flags().MarkHidden("chaos") // exists
	return cmd
}

// workFlags say which jobs the node runs, and how.
func (f *nodeFlags) workFlags(cmd *cobra.Command) {
	c, fs := &f.config, cmd.Flags()
	fs.Var(&list[node.Queue]{v: &c.Queues, texts: []string{queue.DefaultQueue}, word: "NAMES", parse: parseWeighted}, "queues",
		"queues with their weights: a=3,b gives a three times the share of b while both have work")
	fs.BoolVar(&c.Strict, "strict", false, "serve the queues in their order instead of by weight: a later one can starve")
	workers := intFlag(&f.workers, func(n int64) error {
		if n < 1 || n > 100_000 {
			return errors.New("must be 1 to 100000")
		}
		return nil
	})
	workers.text = "10"
	fs.Var(workers, "workers", "jobs at a time, over all queues")
	fs.Var(&list[netip.Prefix]{v: &f.webhook.Allow, word: "NETWORKS", parse: parseNetwork}, "webhook-allow",
		"networks that webhooks may reach although they are not public, such as 10.0.0.0/8; repeatable")
	fs.Var(&secrets{list[string]{v: &f.webhook.Secrets, word: "SECRETS", parse: parseText("a secret")}}, "webhook-secret",
		"secrets that sign webhooks, whsec_<base64>, the newest first; repeatable; better in KELPIE_WEBHOOK_SECRET")
	fs.StringVar(&c.HTTP, "http", "", "`HOST:PORT` for /livez, /readyz and /metrics (default off)")
	f.level = zerolog.InfoLevel
	fs.Var(&parsed[zerolog.Level]{v: &f.level, text: "info", word: "LEVEL", parse: parseLevel}, "log-level", "debug, info, warn or error")
}

// herdFlags say how the node lives with the others.
func (f *nodeFlags) herdFlags(cmd *cobra.Command) {
	c, fs := &f.config, cmd.Flags()
	fs.Var(nameFlag(&c.Name, "name", ""), "name", "name of the node (default: the host's)")
	fs.StringVar(&c.Gossip, "gossip", "", "`HOST:PORT` of the gossip, or off (default: the local address towards Redis, port 7946 or a free one)")
	fs.Var(&list[string]{v: &c.Join, word: "HOSTS", parse: parseText("HOST:PORT")}, "join",
		"HOST:PORT of other nodes, besides those that Redis knows; repeatable")
	fs.StringVar(&c.Preset, "gossip-preset", "fast", "how soon gossip suspects a node, a `PRESET`: fast, lan or wan")
	fs.StringVar(&c.StateDir, "state-dir", "", "`FOLDER` that keeps who ran here, so that a crash recovers in restart time (default none)")
	fs.Var(positiveFlag(&c.Heartbeat, "500ms"), "heartbeat", "interval of the signs of life")
	fs.Var(positiveFlag(&c.Silence, "2s"), "silence", "a node that is silent so long, and dead to a second witness, is declared dead")
	fs.Var(positiveFlag(&c.Lease, "15s"), "lease", "a node that is silent so long is declared dead without a witness")
	fs.Var(positiveFlag(&c.DrainTimeout, "25s"), "drain-timeout", "how long jobs may finish when the node stops")
	fs.BoolVar(&c.AllowEviction, "allow-eviction", false, "start on a Redis whose maxmemory-policy throws jobs away")
}

func parseWeighted(s string) (node.Queue, error) {
	name, text, weighted := strings.Cut(s, "=")
	q := node.Queue{Name: name, Weight: 1}
	if err := queue.CheckName("queue", name); err != nil {
		return q, fmt.Errorf("queue %q %w", clip(name), rule(err))
	}
	if !weighted {
		return q, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1000 {
		return q, fmt.Errorf("the weight of queue %s must be 1 to 1000", name)
	}
	q.Weight = n
	return q, nil
}

func parseLevel(s string) (zerolog.Level, error) {
	switch s {
	case "debug", "info", "warn", "error":
		return zerolog.ParseLevel(s)
	}
	return zerolog.InfoLevel, errors.New("must be debug, info, warn or error")
}

func (f *nodeFlags) run(cmd *cobra.Command) error {
	redis.SetLogger(noLog{})
	log := newLog(cmd.ErrOrStderr(), f.level)
	f.config.Redis, f.config.Prefix, f.config.Log = f.redis.text, f.prefix, log
	f.config.Version = build().Version
	if f.chaos != "" {
		f.config.Links = filepath.Join(f.chaos, chaosLinks)
	}
	if f.workers != nil {
		f.config.Workers = *f.workers
	}
	ctx, abort, release := drainOnSignal(cmd.Context(), log)
	defer release()
	f.config.Abort = abort.closed

	n, err := node.New(f.config)
	if err != nil {
		return err
	}
	f.webhook.Version, f.webhook.Log = f.config.Version, log
	hooks, err := webhook.New(f.webhook)
	if err != nil {
		return &fault{err: err, code: exitConfig}
	}
	defer hooks.Close()
	node.Handle(n, webhook.Kind, hooks.Deliver)
	if f.chaos != "" {
		end, err := f.serveChaos(n)
		if err != nil {
			return err
		}
		defer end()
	}
	err = n.Run(ctx)
	if errors.Is(err, node.ErrAborted) {
		return withCode(abort.by().code(), err)
	}
	return f.explain(err)
}

// aborting is what the second signal does.
type aborting struct {
	closed chan struct{}
	signal os.Signal // set before closed is
}

func (a *aborting) by() interrupted { return interrupted{a.signal} }

// twin is how long after a signal another one is taken for the same: timeout(1)
// and some shells signal a process and then its group.
const twin = 100 * time.Millisecond

// drop takes the twins of a signal.
func drop(signals <-chan os.Signal, stop <-chan struct{}) {
	over := time.After(twin)
	for {
		select {
		case <-signals:
		case <-over:
			return
		case <-stop:
			return
		}
	}
}

// drainOnSignal returns a context that the first SIGINT or SIGTERM ends, and a
// channel that the second one closes. After it both have their usual effect.
func drainOnSignal(parent context.Context, log zerolog.Logger) (ctx context.Context, a *aborting, release func()) {
	ctx, cancel := context.WithCancel(parent)
	a = &aborting{closed: make(chan struct{})}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for _, act := range []func(os.Signal){
			func(s os.Signal) {
				log.Info().Stringer("signal", s).Msg("drains; a second signal hands running jobs back at once")
				cancel()
			},
			func(s os.Signal) {
				log.Warn().Stringer("signal", s).Msg("hands running jobs back")
				signal.Stop(signals)
				a.signal = s
				close(a.closed)
			},
		} {
			select {
			case s := <-signals:
				act(s)
			case <-stop:
				return
			}
			drop(signals, stop)
		}
	}()
	return ctx, a, func() {
		signal.Stop(signals)
		close(stop)
		<-done
		cancel()
	}
}
