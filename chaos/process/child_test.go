package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func start(t *testing.T, k *Kennel, c Command) *Child {
	t.Helper()
	child, err := k.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return child
}

func idle(name string) Command {
	return Command{Name: name, Program: os.Args[0], Args: []string{"idle"}}
}

func TestSignalsReachTheProcess(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(*Child)
		want syscall.Signal
	}{
		"kill":                              {(*Child).Kill, syscall.SIGKILL},
		"term":                              {(*Child).Term, syscall.SIGTERM},
		"a stopped one can be killed":       {func(c *Child) { c.Stop(); c.Kill() }, syscall.SIGKILL},
		"a stopped one ends after it cont.": {func(c *Child) { c.Stop(); c.Term(); c.Cont() }, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, open(t, Options{}), idle("idle"))
			tt.do(c)
			exit, ok := c.Err().(*exec.ExitError)
			if !ok || exit.Sys().(syscall.WaitStatus).Signal() != tt.want {
				t.Errorf("it ended with %v, want %v", c.Err(), tt.want)
			}
			c.Kill() // and nothing happens
			c.Stop()
		})
	}
}

func TestTheWholeGroupDies(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Child){
		"when it is killed":                        (*Child).Kill,
		"when it ends and leaves its child behind": (*Child).Term,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, open(t, Options{}), Command{Name: "parent", Program: os.Args[0], Args: []string{"parent"}})
			var child int
			eventually(t, "its child runs", func() bool {
				text, _ := os.ReadFile(c.Log())
				_, err := fmt.Sscanf(string(text), "idle %d\n", &child)
				return err == nil && bytes.HasSuffix(text, []byte("\n"))
			})
			if gone(child) {
				t.Error("the child is gone already: this test would not see it go")
			}
			end(c)
			<-c.Ended()
			eventually(t, "the child is gone", func() bool { return gone(child) })
		})
	}
}

func TestAProcessKnowsNothingOfOtherKelpies(t *testing.T) {
	t.Setenv("KELPIE_REDIS", "redis://elsewhere")
	t.Setenv("DRAWER", "full")
	k := open(t, Options{})
	c := start(t, k, Command{Name: "env", Program: "env", Env: []string{"KELPIE_CHAOS_SKEW=2m"}, Dir: "/"})
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.Log())
	if err != nil || bytes.Contains(text, []byte("elsewhere")) || !bytes.Contains(text, []byte("DRAWER=full")) || !bytes.Contains(text, []byte("KELPIE_CHAOS_SKEW=2m")) {
		t.Errorf("its environment: %s, %v", text, err)
	}
}

func TestTheTestimonyHasTheLastWordsOfEach(t *testing.T) {
	t.Parallel()
	k := open(t, Options{})
	for _, text := range []string{"seq 1 9", "seq 10 20"} { // the same name twice: one log
		c := start(t, k, Command{Name: "counter", Program: "/bin/sh", Args: []string{"-c", text}})
		if err := c.Err(); err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, k, Command{Name: "missing", Program: "/no/such/program"})
	if err := c.Err(); err == nil || !strings.Contains(c.LastWords(1), "/no/such/program") {
		t.Errorf("a program that is not there: %v, %q", err, c.LastWords(1))
	}
	got := k.Testimony()
	if strings.Count(got, "--- counter") != 1 || !strings.Contains(got, "\n9\n10\n") || strings.Contains(got, "\n8\n") || !strings.Contains(got, "--- missing") {
		t.Errorf("testimony:\n%s", got)
	}
}
