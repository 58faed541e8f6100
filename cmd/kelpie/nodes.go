package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kelpiehq/kelpie/queue"
)

// nodeView is the JSON of a node.
type nodeView struct {
	Name           string   `json:"name"`
	Session        string   `json:"session"`
	Version        string   `json:"version"`
	Queues         []string `json:"queues"`
	Active         int      `json:"active"`
	Workers        int      `json:"workers"`
	Draining       bool     `json:"draining"`
	Sweeper        bool     `json:"sweeper"`
	Epoch          int64    `json:"epoch"`
	HeartbeatAgeMS int64    `json:"heartbeat_age_ms"`
	Gossip         []string `json:"gossip"`
}

func viewNode(n queue.NodeInfo) nodeView {
	return nodeView{
		Name: n.Name, Session: n.Session, Version: n.Version,
		Queues: slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(n.Queues)))),
		Active: n.Active, Workers: n.Workers, Draining: n.Draining, Sweeper: n.Sweeper, Epoch: n.Epoch,
		HeartbeatAgeMS: n.HeartbeatAge.Milliseconds(), Gossip: append([]string{}, n.Members...),
	}
}

var nodeColumns = []string{"NODE", "SESSION", "VERSION", "QUEUES", "ACTIVE", "ROLE", "HEARTBEAT", "SEES"}

func nodeRow(n queue.NodeInfo) []string {
	var role []string
	if n.Sweeper {
		role = append(role, "sweeper (epoch "+strconv.FormatInt(n.Epoch, 10)+")")
	}
	if n.Draining {
		role = append(role, "draining")
	}
	return []string{
		n.Name, n.Session, n.Version, queuesText(n.Queues), strconv.Itoa(n.Active) + "/" + strconv.Itoa(n.Workers),
		strings.Join(role, ", "), span(n.HeartbeatAge) + " ago", strconv.Itoa(len(n.Members)) + " members",
	}
}

// queuesText is the form of --queues: a=3,b.
func queuesText(weights map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if w := weights[name]; w > 1 {
			name += "=" + strconv.Itoa(w)
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ",")
}

func newNodes() *cobra.Command {
	var s space
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "nodes [NODE...]",
		Short: "List the nodes that give signs of life",
		Long: `List all nodes of the job space, or those named, as they describe themselves in
Redis. A node that was killed stays in the list until the others have declared it
dead, which takes some 2 seconds; its heartbeat tells.

The JSON is an array of {name, session, version, queues (names), active, workers,
draining, sweeper, epoch (of its term, 0 if it is not the sweeper),
heartbeat_age_ms, gossip (the members that it sees, itself included)}.`,
		Example: `  kelpie nodes
  kelpie nodes --json | jq -r '.[] | select(.sweeper).name'`,
		RunE: runs(func(cmd *cobra.Command, args []string) error {
			return listNodes(cmd, &s, args, newOutput(cmd, asJSON))
		}),
	}
	s.flags(cmd)
	jsonFlag(cmd, &asJSON, "a JSON array")
	return cmd
}

func listNodes(cmd *cobra.Command, s *space, names []string, out *output) error {
	for _, name := range names {
		if err := queue.CheckName("node", name); err != nil {
			return usage("%w", err)
		}
	}
	c, done, err := s.connect(cmd.Context(), reads)
	if err != nil {
		return err
	}
	defer done()
	infos, err := c.Nodes(cmd.Context())
	if err != nil {
		return s.explain(err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(infos, func(n queue.NodeInfo) bool { return n.Name == name }) {
			return notFound(`"kelpie nodes" lists them`, "no such node: %s", name)
		}
	}
	l := out.listing(nodeColumns...)
	for _, n := range infos {
		if len(names) > 0 && !slices.Contains(names, n.Name) {
			continue
		}
		if err := l.add(viewNode(n), nodeRow(n)...); err != nil {
			return err
		}
	}
	return l.end(cmd.ErrOrStderr(), `no nodes: "kelpie node" starts one`)
}
