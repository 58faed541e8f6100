package herd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLinksAreWrittenForBothSides(t *testing.T) {
	t.Parallel()
	type step = func(l *Links) error
	for name, tt := range map[string]struct {
		do   step
		want string // the links, as "from to drop;"
	}{
		"at first all passes":   {func(*Links) error { return nil }, ""},
		"a cut is both ways":    {func(l *Links) error { return l.Cut("b", "a") }, "a>b b>a"},
		"one way":               {func(l *Links) error { return l.OneWay("b", "c") }, "b>c"},
		"around a node":         {func(l *Links) error { return l.Around("b", Link{Drop: 1}) }, "a>b b>a b>c c>b"},
		"all":                   {func(l *Links) error { return l.All(Link{Delay: time.Second}) }, "a>b a>c b>a b>c c>a c>b"},
		"the zero link is none": {func(l *Links) error { _ = l.Cut("a", "b"); return l.Set("a", "b", Link{}) }, "b>a"},
		"clear takes all":       {func(l *Links) error { _ = l.All(Link{Drop: 1}); return l.Clear() }, ""},
		"a stranger changes nothing": {func(l *Links) error {
			if err := l.Cut("a", "x"); err == nil || !strings.Contains(err.Error(), `"x"`) {
				t.Errorf("a link to a stranger: %v", err)
			}
			return nil
		}, ""},
		"nor a way to itself": {func(l *Links) error {
			if err := l.OneWay("a", "a"); err == nil {
				t.Error("a link from a node to itself was taken")
			}
			return nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "run", linksFile)
			l, err := openLinks(path, 7, []string{"a", "b", "c"}, &loopback{port: "0"})
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.do(l); err != nil {
				t.Fatal(err)
			}
			var f linksJSON
			read(t, path, &f)
			var ways []string
			for _, k := range f.Links {
				ways = append(ways, k.From+">"+k.To)
			}
			if got := strings.Join(ways, " "); got != tt.want {
				t.Errorf("links %q, want %q", got, tt.want)
			}
			if f.Seed != 7 || f.Peers["127.0.66.3"] != "c" || len(f.Peers) != 3 {
				t.Errorf("seed %d, peers %v", f.Seed, f.Peers)
			}
			if _, err := os.Stat(path + ".new"); err == nil {
				t.Error("a half-made file is left")
			}
		})
	}
}
