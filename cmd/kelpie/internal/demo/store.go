package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/queue"
)

// store is the Redis of the demo.
type store struct {
	url      string
	name     string         // "redis-server 7.0.15", "valkey-server 8.1.1" or "miniredis"
	detail   string         // a sentence on what it is and keeps
	server   *process.Child // nil for miniredis
	embedded *miniredis.Miniredis
	rdb      *redis.Client
}

// real tells if it is a server of its own and not one in this process.
func (s *store) real() bool { return s.server != nil }

// openStore starts the first server on the PATH that is new enough, or else a
// miniredis. The kennel ends the server; close ends the rest.
func openStore(ctx context.Context, k *process.Kennel) (*store, error) {
	program, tooOld := findServer(ctx)
	if program == "" {
		return openEmbedded(tooOld)
	}
	var err error
	for range 5 { // another process may take the port first
		var s *store
		if s, err = startServer(ctx, k, program); err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("%s: %w", program, err)
}

func openEmbedded(tooOld string) (*store, error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("miniredis: %w", err)
	}
	s := &store{url: "redis://" + m.Addr(), name: "miniredis", embedded: m}
	s.detail = "embedded in this process, which the faults spare; it keeps nothing"
	if tooOld != "" {
		s.detail += " (" + tooOld + ")"
	}
	return s, s.connect()
}

func (s *store) connect() error {
	o, err := queue.ParseURL(s.url)
	if err != nil {
		return err
	}
	s.rdb = redis.NewClient(o)
	return nil
}

// close ends what the kennel does not own.
func (s *store) close() error {
	err := s.rdb.Close()
	if s.embedded != nil {
		s.embedded.Close()
	}
	return err
}

// startServer runs a server with AOF on a free port and waits until it answers.
func startServer(ctx context.Context, k *process.Kennel, program string) (_ *store, err error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(k.Dir(), "redis-"+strconv.Itoa(port))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	c, err := k.Start(process.Command{Name: "redis", Program: program, Args: []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--daemonize", "no", "--save", "", "--appendonly", "yes", "--appendfsync", "everysec",
		"--auto-aof-rewrite-percentage", "0"}})
	if err != nil {
		return nil, err
	}
	s := &store{url: "redis://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), server: c}
	if err := s.connect(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Kill()
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.answers(ctx); err != nil {
		return nil, err
	}
	return s, s.describe(ctx, dir)
}

// answers waits until this very process serves its port: another may have been
// faster in taking it.
func (s *store) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ours := fmt.Sprintf("process_id:%d\r\n", s.server.PID())
	for {
		if conn, err := net.Dial("tcp", s.rdb.Options().Addr); err == nil { // asked first: go-redis would print that nobody listens yet
			info, err := s.rdb.Info(ctx, "server").Result()
			if errClose := conn.Close(); errClose == nil && err == nil && strings.Contains(info, ours) {
				return nil
			}
		}
		select {
		case <-s.server.Ended():
			return fmt.Errorf("it ended by itself: %s", s.server.LastWords(5))
		case <-ctx.Done():
			return fmt.Errorf("no answer within 10 s: %s", s.server.LastWords(5))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *store) describe(ctx context.Context, dir string) error {
	c, err := queue.New(s.rdb, queue.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	found, err := c.Server(ctx)
	if err != nil {
		return err
	}
	s.name = found.Name()
	s.detail = "AOF with appendfsync " + found.Fsync + " in " + dir
	return nil
}

var bannerVersion = regexp.MustCompile(`\bv=(\d+)\.(\d+)\.(\d+)`)

// findServer returns the first redis-server or valkey-server on the PATH that is
// new enough, or else a word on one that is too old.
func findServer(ctx context.Context) (program, tooOld string) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, 5*time.Second)
		banner, err := exec.CommandContext(asked, path, "--version").Output()
		cancel()
		if err != nil {
			continue
		}
		version, ok := parseBanner(string(banner))
		if ok && !(queue.Server{Engine: "redis", Version: version}).TooOld() {
			return path, ""
		}
		tooOld = fmt.Sprintf("%s is %s, %s is needed", path, version, queue.MinVersion)
	}
	return "", tooOld
}

// parseBanner reads "Redis server v=7.0.15 sha=...".
func parseBanner(banner string) (version string, ok bool) {
	m := bannerVersion.FindStringSubmatch(banner)
	if m == nil {
		return "of an unknown version", false
	}
	return strings.Join(m[1:], "."), true
}

// Ports for the server: below the range that the kernel gives to clients, and
// away from the ports that people know.
const lowPort, highPort = 20000, 32000

func freePort() (int, error) {
	for range 100 {
		port := lowPort + rand.IntN(highPort-lowPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1", lowPort, highPort)
}
