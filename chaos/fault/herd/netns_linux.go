package herd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/kelpiehq/kelpie/chaos/process"
)

// namespaces is a bridge with one network namespace for each node:
//
//	kb<id>, .1 ══ host ── br0 ── cable<n> ══ eth0, .<n+1>
//	this machine  namespace       ...        namespace
//	              kelpie-<id>-0              kelpie-<id>-<n>
//
// The bridge has a namespace of its own, so that this machine's firewall has no
// say in what passes between the nodes: that of Docker lets nothing pass.
type namespaces struct {
	kennel *process.Kennel
	nodes  int
	id     string
	ip     string       // the program
	net    netip.Prefix // of all, a /24
	keeps  []func() error
}

func newNamespaces(s Spec) network {
	var id [3]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	return &namespaces{kennel: s.Kennel, nodes: s.Settings.Nodes, id: hex.EncodeToString(id[:])}
}

// door is this machine's end of its cable to the bridge.
func (n *namespaces) door() string { return "kb" + n.id }

// hub is the namespace of the bridge.
func (n *namespaces) hub() string { return n.space(-1) }

func (n *namespaces) cable(node int) string { return fmt.Sprintf("cable%d", node+1) }
func (n *namespaces) space(node int) string { return fmt.Sprintf("kelpie-%s-%d", n.id, node+1) }

// at is the address with that number in the network.
func (n *namespaces) at(number int) string {
	a := n.net.Addr().As4()
	a[3] = byte(number)
	return netip.AddrFrom4(a).String()
}

func (n *namespaces) host() string           { return n.at(1) }
func (n *namespaces) peer(node int) string   { return n.at(node + 2) }
func (n *namespaces) gossip(node int) string { return net.JoinHostPort(n.peer(node), "7946") }

// enter has the program run inside: ip becomes it, so the process stays the same.
func (n *namespaces) enter(node int, program string, args []string) (string, []string) {
	return n.ip, append([]string{"netns", "exec", n.space(node), program}, args...)
}

// open builds it all. Each part is promised away before it is made.
func (n *namespaces) open(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root")
	}
	if n.ip, err = exec.LookPath("ip"); err != nil {
		return errors.New("network namespaces need the program ip (package iproute2)")
	}
	if n.ip, err = filepath.Abs(n.ip); err != nil {
		return err
	}
	if n.net, err = freeNetwork(); err != nil {
		return err
	}
	hub, door := n.hub(), n.door()
	if err := n.promise("netns", hub); err != nil {
		return err
	}
	if err := n.promise("link", door); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"netns", "add", hub},
		{"-n", hub, "link", "add", "br0", "type", "bridge"},
		{"-n", hub, "link", "set", "br0", "up"},
		{"link", "add", door, "type", "veth", "peer", "name", "host", "netns", hub},
		{"addr", "add", n.host() + "/24", "dev", door},
		{"link", "set", door, "up"},
		{"-n", hub, "link", "set", "host", "master", "br0", "up"},
	} {
		if err := n.run(ctx, args...); err != nil {
			return err
		}
	}
	for node := range n.nodes {
		if err := n.add(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// add makes the namespace of a node and its cable to the bridge.
func (n *namespaces) add(ctx context.Context, node int) error {
	space, hub, cable := n.space(node), n.hub(), n.cable(node)
	if err := n.promise("netns", space); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"netns", "add", space},
		{"-n", hub, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space},
		{"-n", hub, "link", "set", cable, "master", "br0", "up"},
		{"-n", space, "addr", "add", n.peer(node) + "/24", "dev", "eth0"},
		{"-n", space, "link", "set", "eth0", "up"},
		{"-n", space, "link", "set", "lo", "up"},
	} {
		if err := n.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// removeScript removes, with the program $1, the thing of kind $2 and name $3. It
// succeeds if that is not there in the end.
const removeScript = `"$1" "$2" del "$3" 2>/dev/null; ` +
	`case $2 in netns) ! "$1" netns list | grep -qw -- "$3" ;; *) ! "$1" link show dev "$3" >/dev/null 2>&1 ;; esac`

// promise has the kennel remove a thing in the end, if nothing else did.
func (n *namespaces) promise(kind, name string) error {
	keep, err := n.kennel.Promise("/bin/sh", "-c", removeScript, "kelpie-netns", n.ip, kind, name)
	if err == nil {
		n.keeps = append(n.keeps, keep)
	}
	return err
}

// plug moves the bridge's end of the cable.
func (n *namespaces) plug(node int, in bool) error {
	state := "down"
	if in {
		state = "up"
	}
	return n.run(context.Background(), "-n", n.hub(), "link", "set", n.cable(node), state)
}

// close removes all, the latest first.
func (n *namespaces) close() error {
	var faults []error
	for i := len(n.keeps) - 1; i >= 0; i-- {
		faults = append(faults, n.keeps[i]())
	}
	n.keeps = nil
	return errors.Join(faults...)
}

func (n *namespaces) run(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, n.ip, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("network namespaces cannot be made here: ip %s: %w: %s", args, err, bytes.TrimSpace(out))
	}
	return nil
}

// freeNetwork draws a /24 in 10.0.0.0/8 that no interface of this machine has an
// address in.
func freeNetwork() (netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, err
	}
	for range 100 {
		var b [2]byte
		rand.Read(b[:]) // never fails (crypto/rand)
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, b[0], b[1], 0}), 24)
		if !taken(p, addrs) {
			return p, nil
		}
	}
	return netip.Prefix{}, errors.New("no network in 10.0.0.0/8 is free for the nodes")
}

func taken(p netip.Prefix, addrs []net.Addr) bool {
	for _, a := range addrs {
		other, err := netip.ParsePrefix(a.String())
		if err == nil && p.Overlaps(other.Masked()) {
			return true
		}
	}
	return false
}
