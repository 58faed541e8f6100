package main

import (
	"errors"

	"github.com/kelpiehq/kelpie/chaos/work"
	"github.com/kelpiehq/kelpie/node"
	"github.com/kelpiehq/kelpie/queue"
)

// chaosLinks is the file of a chaos run that says what the nodes' gossip suffers.
const chaosLinks = "links.json"

// serveChaos has the node do the jobs of a chaos run. end is for after the last
// of them. Their children are enqueued over connections of their own, by the
// same way as all else.
func (f *nodeFlags) serveChaos(n *node.Node) (end func(), err error) {
	if f.config.Name == "" {
		return nil, usage("--chaos needs --name: the ledger goes by it")
	}
	rdb, err := queue.Connect(f.redis.text)
	if err != nil {
		return nil, usage("--redis: %w", errURL)
	}
	jobs, err := queue.New(rdb, queue.Options{Prefix: f.prefix})
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	worker, err := work.Open(f.chaos, f.config.Name, jobs)
	if err != nil {
		return nil, errors.Join(err, jobs.Close(), rdb.Close())
	}
	node.Handle(n, work.Kind, worker.Handle)
	return func() { _, _, _ = worker.Close(), jobs.Close(), rdb.Close() }, nil
}
