package herd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// linksFile is what nodes under --chaos read.
const linksFile = "links.json"

// Link is what happens to what one node sends to another by gossip. The zero
// value lets all pass. A stream loses nothing: where packets are lost it waits
// for their repetition, and where all are lost it hangs.
type Link struct {
	Drop      float64       // the part of the packets that are lost; 1: all
	Duplicate float64       // the part that arrives twice
	Delay     time.Duration // of each packet
	Jitter    time.Duration // added to it, drawn from 0 to this; packets overtake each other
}

// Links are the ways of gossip between the nodes. Each change is written at once
// and obeyed within 20 ms. Methods are safe for concurrent use; those that name
// no node of the herd return an error.
type Links struct {
	path  string
	seed  uint64
	peers map[string]string // address -> name
	names []string

	mu    sync.Mutex
	links map[way]Link
}

type way struct{ from, to string }

// The file, which cluster/faulty reads.
type linksJSON struct {
	Seed  uint64            `json:"seed"`
	Peers map[string]string `json:"peers"`
	Links []linkJSON        `json:"links"`
}

type linkJSON struct {
	From      string        `json:"from"`
	To        string        `json:"to"`
	Drop      float64       `json:"drop,omitempty"`
	Duplicate float64       `json:"duplicate,omitempty"`
	Delay     time.Duration `json:"delay,omitempty"`
	Jitter    time.Duration `json:"jitter,omitempty"`
}

// openLinks writes a file that lets all pass.
func openLinks(path string, seed uint64, names []string, at network) (*Links, error) {
	l := &Links{path: path, seed: seed, peers: map[string]string{}, names: names, links: map[way]Link{}}
	for i, name := range names {
		l.peers[at.peer(i)] = name
	}
	return l, l.Clear()
}

// Set gives the way from one node to another; the way back is another.
func (l *Links) Set(from, to string, link Link) error {
	return l.change(map[way]Link{{from, to}: link})
}

// All gives every way between two nodes.
func (l *Links) All(link Link) error {
	ways := map[way]Link{}
	for _, from := range l.names {
		for _, to := range l.names {
			if from != to {
				ways[way{from, to}] = link
			}
		}
	}
	return l.change(ways)
}

// Around gives every way to and from a node.
func (l *Links) Around(name string, link Link) error {
	ways := map[way]Link{}
	for _, other := range l.names {
		if other != name {
			ways[way{name, other}], ways[way{other, name}] = link, link
		}
	}
	return l.change(ways)
}

// Cut takes the way between two nodes, both ways.
func (l *Links) Cut(a, b string) error {
	return l.change(map[way]Link{{a, b}: {Drop: 1}, {b, a}: {Drop: 1}})
}

// OneWay takes the way from one node to another; the way back stays. Streams
// need both.
func (l *Links) OneWay(from, to string) error { return l.Set(from, to, Link{Drop: 1}) }

// Clear lets all pass again.
func (l *Links) Clear() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.links)
	return l.write()
}

func (l *Links) change(ways map[way]Link) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w, link := range ways {
		if !slices.Contains(l.names, w.from) || !slices.Contains(l.names, w.to) || w.from == w.to {
			return fmt.Errorf("link from %q to %q: not two nodes of the herd", w.from, w.to)
		}
		if link == (Link{}) {
			delete(l.links, w)
		} else {
			l.links[w] = link
		}
	}
	return l.write()
}

// write replaces the file as a whole: a reader never sees half of it.
func (l *Links) write() error {
	file := linksJSON{Seed: l.seed, Peers: l.peers, Links: []linkJSON{}}
	for w, k := range l.links {
		file.Links = append(file.Links, linkJSON{w.from, w.to, k.Drop, k.Duplicate, k.Delay, k.Jitter})
	}
	slices.SortFunc(file.Links, func(a, b linkJSON) int {
		return slices.Compare([]string{a.From, a.To}, []string{b.From, b.To})
	})
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return err
	}
	next := l.path + ".new"
	if err := os.WriteFile(next, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(next, l.path)
}
