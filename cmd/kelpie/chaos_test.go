package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kelpiehq/kelpie/chaos"
)

func TestTheCommandOfARunRepeatsIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"scenario and seed always stand there": {
			[]string{"--seed", "7"}, "kelpie chaos run --scenario mixed --seed 7"},
		"what was changed stands there": {
			[]string{"--scenario", "kills", "--seed", "7", "--nodes", "3", "--duration", "20s", "--netns"},
			"kelpie chaos run --scenario kills --seed 7 --duration 20s --netns --nodes 3"},
		"what is for this time only does not": {
			[]string{"--seed", "7", "--json", "--report", "here"}, "kelpie chaos run --scenario mixed --seed 7"},
		"an address shows no password": {
			[]string{"--seed", "7", "--redis", "redis://u:geheim@h"}, "kelpie chaos run --scenario mixed --seed 7 --redis ..."},
		"a path with a space is quoted": {
			[]string{"--seed", "7", "--kelpie", "/my tools/kelpie"}, "kelpie chaos run --scenario mixed --seed 7 --kelpie '/my tools/kelpie'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got chaos.Options
			cmd, f := chaosRunCommand()
			if err := cmd.ParseFlags(tt.args); err != nil {
				t.Fatal(err)
			}
			got, err := f.options(cmd)
			if err != nil {
				t.Fatal(err)
			}
			if got.Command != tt.want {
				t.Errorf("command %q, want %q", got.Command, tt.want)
			}
		})
	}
}

func TestARunWithoutASeedDrawsOne(t *testing.T) {
	t.Parallel()
	drawn := map[uint64]bool{}
	for range 3 {
		cmd, f := chaosRunCommand()
		o, err := f.options(cmd)
		if err != nil {
			t.Fatal(err)
		}
		drawn[o.Draw.Seed] = true
	}
	if len(drawn) == 1 {
		t.Errorf("three runs have one seed: %v", drawn)
	}
}

func TestTheStateOfARunIsOneLine(t *testing.T) {
	t.Parallel()
	p := chaos.Progress{
		Scenario: "kills", Seed: 7, Step: "striking", Elapsed: 12 * time.Second, Duration: time.Minute, Struck: 3, Planned: 16,
		Now: []string{"kill"}, Accepted: 4000, Ended: 3900, Active: 44, Sweeper: "n2\x1b",
	}
	const want = "kills seed 7 · striking · 12/60 s · faults 3/16 · now kill · 4000 accepted, 3900 ended, 44 active · sweeper n2 "
	if got := chaosLine(p); got != want {
		t.Errorf("line\n%q, want\n%q", got, want)
	}
}

func TestTheStateIsDrawnOverItself(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	s := &chaosShow{w: &w, begun: time.Now(), columns: func() int { return 30 }}
	s.show(chaos.Progress{Scenario: "kills", Step: "striking"})
	s.show(chaos.Progress{Scenario: "kills", Step: "settling"})
	s.tell("fault 1: kill n1")
	s.end()
	if strings.Count(w.String(), "\n") != 1 {
		t.Errorf("the state scrolls: %q", w.String())
	}
	for _, frame := range strings.Split(w.String(), "\r") {
		frame = strings.TrimSuffix(frame, "\x1b[K")
		if !strings.Contains(frame, "fault 1") && len([]rune(frame)) >= 30 {
			t.Errorf("%q is as wide as the terminal, which would wrap", frame)
		}
	}
}

func TestTheStateIsToldNowAndThenWhereNobodyDraws(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	s := newChaosShow(&w)
	for range 100 {
		s.show(chaos.Progress{Scenario: "kills", Step: "striking"})
	}
	if got := strings.Count(w.String(), "\n"); got != 1 {
		t.Errorf("a hundred looks within a moment tell %d lines, want 1", got)
	}
}

func TestARunThatDidNotComeAboutProvesNothing(t *testing.T) {
	t.Parallel()
	if got := codeOf(explainChaos(errors.New("no redis-server"))); got != exitUnproven {
		t.Errorf("exit code %d, want %d", got, exitUnproven)
	}
	if got := codeOf(explainChaos(usage("wrong"))); got != exitUsage {
		t.Errorf("exit code %d, want %d", got, exitUsage)
	}
}
