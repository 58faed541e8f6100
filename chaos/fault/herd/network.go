package herd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
)

// network is where the nodes live.
type network interface {
	open(ctx context.Context) error
	host() string           // where the runner listens
	gossip(node int) string // --gossip of a node
	peer(node int) string   // what the rules of the links know a node by: "IP" or "IP:port"
	enter(node int, program string, args []string) (string, []string)
	plug(node int, in bool) error
	close() error
}

func newNetwork(s Spec) network {
	switch {
	case s.Netns:
		return newNamespaces(s)
	case runtime.GOOS == "linux":
		return &loopback{}
	default:
		return &ports{nodes: s.Settings.Nodes}
	}
}

var errNoPlug = errors.New("only a node with its own network namespace can be unplugged")

// loopback gives each node an address of its own: on Linux all of 127.0.0.0/8
// is this machine. All have one port, which a node keeps over restarts as it does
// under a supervisor.
type loopback struct{ port string }

// open chooses a port that is free now on the first node's address, for TCP and
// UDP both.
func (l *loopback) open(context.Context) error {
	tcp, err := net.Listen("tcp", net.JoinHostPort(l.peer(0), "0"))
	if err != nil {
		return err
	}
	defer tcp.Close()
	_, l.port, _ = net.SplitHostPort(tcp.Addr().String())
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		return fmt.Errorf("a port for gossip: %w", err)
	}
	return udp.Close()
}

func (loopback) close() error             { return nil }
func (loopback) host() string             { return "127.0.0.1" }
func (loopback) peer(node int) string     { return fmt.Sprintf("127.0.66.%d", node+1) }
func (l loopback) gossip(node int) string { return net.JoinHostPort(l.peer(node), l.port) }
func (loopback) plug(int, bool) error     { return errNoPlug }
func (loopback) enter(_ int, program string, args []string) (string, []string) {
	return program, args
}

// ports gives each node a port of its own.
type ports struct {
	loopback
	nodes int
	port  []int
}

// open chooses ports that are free now, for TCP and UDP both. They are all held
// until the last one is found, so no two are the same.
func (p *ports) open(context.Context) error {
	for range p.nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		u, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("a port for gossip: %w", err)
		}
		defer u.Close()
		p.port = append(p.port, port)
	}
	return nil
}

func (p *ports) peer(node int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port[node]))
}
func (p *ports) gossip(node int) string { return p.peer(node) }
