package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

// nodeProcess is a node that has begun to deliver a webhook to a receiver which
// answers only when it is told to.
type nodeProcess struct {
	cmd    *exec.Cmd
	stderr io.Closer
	log    *bufio.Scanner
	answer chan struct{}
	space  []string // flags
}

func startDelivering(t *testing.T) *nodeProcess {
	t.Helper()
	p := &nodeProcess{answer: make(chan struct{}), space: []string{"--redis", redistest.Dedicated(t).URL()}}
	begun := make(chan struct{}, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-p.answer:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(receiver.Close)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(program)
	p.cmd.Args = append([]string{"kelpie", "node", "--gossip", "off", "--webhook-allow", "127.0.0.0/8"}, p.space...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stderr, p.log = stderr, bufio.NewScanner(stderr)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.kelpie(t, "enqueue", "-k", "webhook", "--id", "slow", "--retention", "1h", `{"url":"`+receiver.URL+`"}`)
	select {
	case <-begun:
	case <-time.After(20 * time.Second):
		t.Fatal("the node has not taken the job")
	}
	return p
}

// kelpie runs a command in this process and returns its stdout.
func (p *nodeProcess) kelpie(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(append(args, p.space...), strings.NewReader(""), &out, &errOut); code != exitOK {
		t.Fatalf("kelpie %v: exit code %d: %s", args, code, &errOut)
	}
	return out.String()
}

func (p *nodeProcess) signal(t *testing.T, s os.Signal, until string) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	for p.log.Scan() {
		if strings.Contains(p.log.Text(), until) {
			return
		}
	}
	t.Fatalf("the node ended before it said %q", until)
}

// end reads the rest of the log and returns the exit code.
func (p *nodeProcess) end(t *testing.T) int {
	t.Helper()
	for p.log.Scan() {
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

func TestTheFirstSignalLetsJobsFinish(t *testing.T) {
	t.Parallel()
	p := startDelivering(t)
	p.signal(t, syscall.SIGTERM, `"message":"drains`)
	close(p.answer)
	if code := p.end(t); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
	if job := p.kelpie(t, "jobs", "show", "slow", "--json"); !strings.Contains(job, `"state":"completed"`) {
		t.Errorf("the job is not completed: %s", job)
	}
}

func TestTheSecondSignalHandsJobsBackUnspent(t *testing.T) {
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			p := startDelivering(t)
			p.signal(t, syscall.SIGTERM, `"message":"drains`)
			<-time.After(twin + 20*time.Millisecond) // the rule is about time
			if err := p.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if got := p.end(t); got != code {
				t.Errorf("exit code %d, want %d", got, code)
			}
			if job := p.kelpie(t, "jobs", "show", "slow", "--json"); !strings.Contains(job, `"state":"waiting","attempts":0,`) {
				t.Errorf("the job is not back: %s", job)
			}
		})
	}
}

func TestALogThatNobodyReadsDoesNotEndTheNode(t *testing.T) {
	t.Parallel()
	p := startDelivering(t)
	_ = p.stderr.Close()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	close(p.answer)
	if code := p.end(t); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
}
