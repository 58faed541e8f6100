// Package herd runs the nodes of a chaos run, each as a process of its own, and
// what lies between them: gossip links, network namespaces, wall clocks.
//
//	New ─▶ Open: network, links.json ─▶ Start: all nodes ─▶ Gather ─▶ ... ─▶ End: SIGTERM ─▶ Close: the network
//
// A node keeps its name over restarts; each start is a new process and a new
// session. All processes belong to the kennel, so none outlives the run.
//
// # Links
//
// Nodes started with --chaos DIR read DIR/links.json and obey it in what they
// send to each other by gossip and in what the witness tries (package
// cluster/faulty). Each ordered pair of nodes has its own link: lost, delayed
// and repeated packets. Packets know addresses only, so each node gossips from
// an address of its own, and the file tells whose it is: 127.0.66.1, .2, ... on
// Linux, one loopback address with fixed ports elsewhere. A change is obeyed
// within 20 ms.
//
// # Network namespaces
//
// With Spec.Netns each node has its own network namespace, with its own
// interfaces and port numbers, on a bridge (Linux, root, the program ip). What
// the nodes shall reach (the proxies before Redis) listens on Host, this
// machine's address there. The kernel can also cut a node from everything, see Node.Unplug. The
// kennel promises to take it all down.
//
// # Clocks
//
// A node with a skew runs another build of the same sources, in which time.Now
// is off by what KELPIE_CHAOS_SKEW says: see Skewed. Monotonic readings stay true.
//
// # Not promised
//
// A change of links does not reach into a connect that is under way, and a packet
// that is under way arrives. Loss draws from the seed in the order of the
// packets, which no seed repeats. The links hold for gossip only; other traffic
// is cut by the proxies, or by Unplug.
package herd
