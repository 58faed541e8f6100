package herd

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/fault/proxy"
	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/chaos/redistest"
	"github.com/kelpiehq/kelpie/queue"
)

// cannot says why network namespaces cannot be had here, or nothing.
var cannot = sync.OnceValue(func() string {
	name := fmt.Sprintf("kt%d", os.Getpid())
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	defer func() { _ = exec.Command("ip", "netns", "del", name).Run() }()
	if out, err := exec.Command("ip", "-n", name, "link", "add", "br0", "type", "bridge").CombinedOutput(); err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return ""
})

func needNamespaces(t *testing.T) {
	t.Helper()
	if why := cannot(); why != "" {
		t.Skip("no network namespaces here: " + why)
	}
}

// left lists what of a network is still there.
func left(t *testing.T, id string) (words []string) {
	t.Helper()
	for _, args := range [][]string{{"netns", "list"}, {"-o", "link"}} {
		out, err := exec.Command("ip", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, id) {
				words = append(words, strings.TrimSpace(line))
			}
		}
	}
	return words
}

func TestNodesInNamespacesMeetOverTheBridge(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	var url string
	f := newFlock(t, 2, func(s *Spec) {
		s.Netns, s.RedisURL = true, func(int) string { return url }
		s.Settings.Heartbeat, s.Settings.Silence = 200*time.Millisecond, time.Second
	})
	id := f.network.(*namespaces).id
	way, err := proxy.Listen(net.JoinHostPort(f.Host(), "0"), func() string { return redistest.Shared(t).Client(t).Options().Addr }, proxy.NewNames(nil))
	if err != nil {
		t.Fatal(err)
	}
	url = "redis://" + way.Addr()
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = way.Run(ctx) })
	defer serving.Wait()
	defer cancel()
	f.gather()
	n1 := f.Node("n1")
	if err := n1.Unplug(); err != nil {
		t.Fatal(err)
	}
	f.eventually("n2 has not heard of n1", func(of map[string]queue.NodeInfo) bool {
		return !strings.Contains(strings.Join(of["n2"].Members, " "), "n1") && of["n2"].HeartbeatAge < time.Second
	})
	if !n1.Running() {
		t.Error("the unplugged node ended")
	}
	if err := n1.Plug(); err != nil {
		t.Fatal(err)
	}
	f.healthy()
	if len(left(t, id)) < 4 {
		t.Errorf("while it runs there are %v: this test would not see them go", left(t, id))
	}
	if err := f.End(t.Context()); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if words := left(t, id); len(words) > 0 {
		t.Errorf("left behind: %v", words)
	}
}

func TestAKillOfTheRunnerLeavesNoNamespace(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	runner := exec.Command(os.Args[0], "runner", filepath.Join(t.TempDir(), "run"))
	runner.Stderr = os.Stderr
	out, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var id string
	var pid int
	if _, scan := fmt.Sscan(line, &id, &pid); err != nil || scan != nil {
		t.Fatalf("the runner said %q: %v, %v", line, err, scan)
	}
	if len(left(t, id)) < 4 || syscall.Kill(pid, 0) != nil {
		t.Errorf("while it runs there are %v: this test would not see them go", left(t, id))
	}
	_ = runner.Process.Kill()
	_ = runner.Wait()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(left(t, id)) > 0 || syscall.Kill(pid, 0) == nil {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("left behind: %v; process %d: %v", left(t, id), pid, syscall.Kill(pid, 0))
		}
	}
}

func TestATakenNetworkIsNotDrawn(t *testing.T) {
	t.Parallel()
	ours := netip.MustParsePrefix("10.7.8.0/24")
	for name, tt := range map[string]struct {
		addr string
		want bool
	}{
		"an address in it":       {"10.7.8.9/24", true},
		"a larger network":       {"10.0.0.1/8", true},
		"one beside":             {"10.7.9.1/24", false},
		"another protocol":       {"fe80::1/64", false},
		"what cannot be read is": {"nothing", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := taken(ours, []net.Addr{address(tt.addr)}); got != tt.want {
				t.Errorf("taken = %v, want %v", got, tt.want)
			}
		})
	}
}

type address string

func (address) Network() string  { return "ip+net" }
func (a address) String() string { return string(a) }

func init() { runner = wait }

// wait makes namespaces with an idle process in one, says its id, and waits.
func wait(dir string) {
	k, err := process.Open(process.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	s := Spec{Kennel: k, Kelpie: "kelpie", Dir: dir, RedisURL: func(int) string { return "" }, Netns: true}
	s.Settings.Nodes = 2
	h, err := New(s)
	if err != nil {
		panic(err)
	}
	if err := h.Open(context.Background()); err != nil {
		panic(err)
	}
	program, args := h.network.enter(0, "sleep", []string{"600"})
	c, err := k.Start(process.Command{Name: "sleep", Program: program, Args: args})
	if err != nil {
		panic(err)
	}
	fmt.Println(h.network.(*namespaces).id, c.PID())
	for {
		time.Sleep(time.Hour)
	}
}
