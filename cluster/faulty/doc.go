// Package faulty makes the network of gossip a bad one, by rules in a file: it
// drops, delays and repeats what this node sends to others. It is for tests of
// faults, never for production.
//
//	memberlist ──packets, streams──▶ Transport ──▶ sockets
//	witness ──────connects─────────▶ Dial ───────▶ sockets
//	                                  ▲
//	                            rules file, looked at every 20 ms at most
//
// # The file
//
//	{
//	  "seed": 7,
//	  "peers": {"127.0.66.1": "n1", "127.0.66.2:7946": "n2"},
//	  "links": [{"from": "n1", "to": "n2", "drop": 0.3, "duplicate": 0.1, "delay": 20000000, "jitter": 5000000}]
//	}
//
// Packets carry addresses only; "peers" says whose they are, by IP and port or
// by IP alone. Each entry of "links" holds for one ordered pair of nodes, the
// last one for a pair; all else passes. "drop" and "duplicate" are parts of the
// packets, from 0 to 1; "delay" and "jitter" are nanoseconds, the jitter drawn
// from 0 to its value. Who changes the file replaces it as a whole (rename).
//
// The sender obeys. So all nodes must read the same file, and a packet that is
// under way is not called back.
//
// # Streams
//
// A stream is governed by the side that opened it. It loses and repeats nothing,
// as TCP does not: where packets are lost it waits for their repetition, and
// where all are lost, on the way there or back, it hangs until its deadline. So
// a cut looks to the witness as a dead machine does (no answer), and never as a
// dead process (refused).
//
// # Owners
//
// Delayed packets wait in one queue of the Transport, with one timer. Shutdown,
// which memberlist calls, ends both; what still waits is lost. Bounded to 10,000
// packets; above, the newest is lost.
//
// # Not promised
//
// The seed gives the order of draws, not of packets: two runs differ.
package faulty
