package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// dockerAnswers reports whether an engine answers within 5 s.
func dockerAnswers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p, err := dockerProvider()
	return err == nil && p.Health(ctx) == nil
}

// dockerProvider turns testcontainers' own reaper off, which would be one more
// image to pull and is more than a watchdog needs to be.
func dockerProvider() (p *testcontainers.DockerProvider, err error) {
	defer func() { // testcontainers panics when it finds no socket at all
		if r := recover(); r != nil {
			err = fmt.Errorf("no Docker engine: %v", r)
		}
	}()
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return nil, err
	}
	generic, err := testcontainers.ProviderDefault.GetProvider(testcontainers.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	p, ok := generic.(*testcontainers.DockerProvider)
	if !ok {
		return nil, fmt.Errorf("%T is not a Docker engine", generic)
	}
	return p, nil
}

// silent drops testcontainers' progress; errors come back as errors.
type silent struct{}

func (silent) Printf(string, ...any) {}

var _ log.Logger = silent{}

// containerBackend is a Redis in a container.
type containerBackend struct {
	image string
	args  []string

	provider *testcontainers.DockerProvider
	box      testcontainers.Container // nil before the first start
	guard    *watchdog                // nil without the docker command
	host     string
	port     int
}

const redisPort = "6379/tcp" // inside the container

func (c *containerBackend) start(ctx context.Context) error {
	if c.box != nil {
		_, err := c.provider.Client().ContainerStart(ctx, c.box.GetContainerID(), client.ContainerStartOptions{})
		return err
	}
	p, err := dockerProvider()
	if err != nil {
		return err
	}
	c.provider = p
	if c.port, err = freePort(); err != nil {
		return err
	}
	if c.host, err = p.DaemonHost(ctx); err != nil {
		return err
	}
	if c.host == "localhost" { // could also be ::1, where nothing is published
		c.host = "127.0.0.1"
	}
	c.box, err = p.CreateContainer(ctx, c.request())
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("docker"); err == nil {
		if c.guard, err = startWatchdog(removeContainer, c.box.GetContainerID()); err != nil {
			return err
		}
	}
	if err := c.box.Start(ctx); err != nil {
		return err
	}
	c.preferLoopback(ctx)
	return nil
}

// preferLoopback takes the engine for local when the port answers here: inside a
// container its host is guessed to be the gateway, also where an engine runs
// beside us.
func (c *containerBackend) preferLoopback(ctx context.Context) {
	const here = "127.0.0.1"
	if c.host == here {
		return
	}
	d := net.Dialer{Timeout: time.Second}
	if conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(here, strconv.Itoa(c.port))); err == nil {
		_ = conn.Close()
		c.host = here
	}
}

// request publishes a port that is fixed: one that Docker chose would change
// with a restart.
func (c *containerBackend) request() testcontainers.ContainerRequest {
	return testcontainers.ContainerRequest{
		Image:        c.image,
		ExposedPorts: []string{redisPort},
		Cmd: append([]string{
			"redis-server", "--save", "", "--appendonly", "no", "--protected-mode", "no",
		}, c.args...),
		HostConfigModifier: func(h *container.HostConfig) {
			h.PortBindings = network.PortMap{
				network.MustParsePort(redisPort): {{HostIP: c.bind(), HostPort: strconv.Itoa(c.port)}},
			}
		},
	}
}

// bind keeps the port off the network, unless the engine itself is elsewhere.
func (c *containerBackend) bind() netip.Addr {
	if c.host == "127.0.0.1" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv4Unspecified()
}

func (c *containerBackend) kill() error {
	return c.do(func(ctx context.Context, docker client.APIClient, id string) error {
		state, err := c.box.State(ctx)
		if err != nil || !state.Running {
			return err
		}
		if state.Paused { // docker does not kill what is frozen
			if _, err := docker.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{}); err != nil {
				return err
			}
		}
		if _, err := docker.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			return err
		}
		return c.awaitDeath(ctx)
	})
}

func (c *containerBackend) awaitDeath(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		state, err := c.box.State(ctx)
		if err != nil || !state.Running {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("the container still runs after a kill")
		case <-tick.C:
		}
	}
}

func (c *containerBackend) pause() error {
	return c.do(func(ctx context.Context, docker client.APIClient, id string) error {
		_, err := docker.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		return err
	})
}

func (c *containerBackend) resume() error {
	return c.do(func(ctx context.Context, docker client.APIClient, id string) error {
		_, err := docker.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		return err
	})
}

func (c *containerBackend) remove() error {
	err := c.do(func(ctx context.Context, docker client.APIClient, id string) error {
		_, err := docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return err
	})
	if c.guard != nil {
		_ = c.guard.pipe.Close()
		_ = c.guard.cmd.Wait() // "no such container" is what it is told, as it should be
	}
	if c.provider != nil {
		err = errors.Join(err, c.provider.Close())
	}
	return err
}

// do runs f on the container, if there is one, within patience.
func (c *containerBackend) do(f func(ctx context.Context, docker client.APIClient, id string) error) error {
	if c.box == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return f(ctx, c.provider.Client(), c.box.GetContainerID())
}

func (c *containerBackend) addr() string { return net.JoinHostPort(c.host, strconv.Itoa(c.port)) }

// output is what the server said, the end of it.
func (c *containerBackend) output() string {
	if c.box == nil {
		return "(no container)"
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lines, err := c.box.Logs(ctx)
	if err != nil {
		return "(docker logs " + c.box.GetContainerID() + ": " + err.Error() + ")"
	}
	defer lines.Close()
	text, _ := io.ReadAll(io.LimitReader(lines, 1<<20))
	return tail(string(text))
}

// dead reports that the container has ended by itself.
func (c *containerBackend) dead() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	state, err := c.box.State(ctx)
	return err == nil && !state.Running
}
