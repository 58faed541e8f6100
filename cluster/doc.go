// Package cluster tells a node which others are there. It wraps memberlist
// (SWIM gossip over UDP and TCP) and knows nothing of jobs.
//
//	Config.Peers, Seeds ──join, every 15 s──▶ memberlist ──callbacks──▶ snapshot ──▶ Members, Dead
//	                                                                     └────────▶ Events
//	Meet ──TCP connect──▶ "reached" ──▶ Witness: refused | no answer | accepted | unfit
//
// # Who is who
//
// A member's gossip name is "<node name>-<boot suffix>", new at every start:
// under a fixed name a restarted node stayed invisible to its peers for 40 s.
// So a name never comes back. Its metadata carries the session, the node name,
// a version, an HTTP address and two flags, in less than 512 bytes: memberlist
// panics above. The flags and the session always fit; then node name, HTTP
// address and version are taken in this order, and one that does not fit any
// more is left out (the gossip name tells the node name as well). Long lists
// (queues, kinds) have no place here.
//
// # Joining
//
// A round runs at start and then every 15 s with jitter, sooner while the node
// is alone. It asks Peers, resolves the seeds anew, adds the members that were
// lost within the last six hours, and joins those that are no members, a few at
// a time. Memberlist alone never heals a partition that outlasted its memory of
// the dead; the rounds do. Failing to join is never an error.
//
// # States
//
// A member is alive, dead (memberlist gave it up) or left (it said so). The
// notice of leaving is a message of our own, since memberlist's callback does
// not tell the two apart; it is sent twice and may still be lost, and then the
// member shows as dead. Left is final. Who is in no list is unknown, and that
// is not dead.
//
// # The witness
//
// Gossip never decides anything. A TCP connect to a member's gossip address is
// evidence about its session: refused (nothing listens there any more), no
// answer, or accepted, which is a sign of life even when nothing follows, as
// the kernel of a stopped process accepts. It is evidence only from a node that
// has reached that session at that address before (Meet), else the verdict is
// unfit; and the caller asks with Reaches whether it still reaches another
// session whose beat is fresh. Refused is enough; no answer counts together
// with Dead; see Evidence.Enough.
//
// # House rules
//
// The callbacks of memberlist run under its locks: they copy, queue and return,
// and readers get our own snapshot. Messages are delivered outside of them. The
// label keeps clusters apart, the key encrypts. Addresses are resolved here:
// memberlist would take a host name for the wildcard, and run `ip route` to
// find its own address.
//
// # Not promised
//
// That two nodes see the same members at the same time; that a message arrives,
// or arrives once; that a sender of a message is who it says (who has the key
// is a full member); that Dead is true. When Run has returned, goroutines of
// memberlist itself may linger until their time-outs are over (some seconds);
// their callbacks are ignored.
package cluster
