// Package proxy is a way to Redis that can be harmed: cut, blocked on one side,
// slowed, or hit at the very command that matters.
//
//	client ── lane up ──▶ Redis      each lane keeps order, holds what comes
//	       ◀─ lane down ──           while its way is blocked, and adds its delay
//
// A Proxy reads RESP, so it knows which reply answers which command, and which
// script a command runs. A Shot is aimed at commands by name and does to them
// what networks do now and then, but never when one waits for it:
//
//	DropReply  Redis executes it; the connection ends before the reply
//	LateCopy   Redis executes it, and a copy of it later once more
//	Hold       it arrives late, and so does what follows on its connection
//	Late       the connection breaks, then it arrives
//	Lose       the connection breaks, and it never arrives
//
// A blocked way is a network that swallows packets, as TCP sees it: what was
// sent arrives when the way is open again, even if the sender has given up and
// closed its connection by then. Cut is a network, or a host, that refuses and
// resets.
//
// # Not promised
//
// A connection that is made while the way is blocked is accepted, as the kernel
// does that; nothing answers on it. One made while Redis itself is gone is
// accepted and reset. After SUBSCRIBE, MONITOR, PSYNC, SYNC or CLIENT REPLY the
// replies of a connection are passed on, and no shot sees its commands. TLS is
// not understood.
package proxy
