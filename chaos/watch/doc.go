// Package watch collects what Redis tells of a chaos run, while it goes on and
// when it has come to rest.
//
// A Collector follows the logs of all queues and of the whole space, samples what
// an operator would see, and reads Redis's clock between two readings of this
// machine's. It speaks to Redis directly, not through the proxies that hurt the
// nodes. While Redis is away it goes on asking.
//
// # Lost writes
//
// A log only grows, unless Redis loses its last writes: then it is a prefix of
// what it was, and grows anew from there. The collector keeps a checksum of each
// entry that it read. Every page that it reads begins with the last entry of the
// one before; where that is gone or another, it looks for the end of the common
// prefix, writes a Step with Back set for it, and reads on from there. Entries
// that were written and lost between two pages were never seen; pages are read
// every 50 ms, and at once while they are full.
//
// A Redis that lost everything has lost the switch of the log as well; the
// collector sets it again when it notices. What happened until then is in no log.
//
// # At rest
//
// Final reads all that the queues hold, page by page: ids without a body and
// bodies without a place are seen as well. It is not one moment. A queue whose
// counters moved meanwhile is read again, a few times; after that it is taken as
// it was read.
package watch
