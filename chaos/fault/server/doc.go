// Package server starts Redis servers of a run's own, and hurts them.
//
// Start gives one Redis with an AOF, StartSentinel a master with two replicas
// and three Sentinels that watch them. All of them are processes of a kennel, on
// free ports of one address, and keep their files in the kennel's folder; the
// kennel ends them, also when the run is killed.
//
// # What each harm is
//
//   - Kill and Restart: the process dies by kill -9 and comes back on the same
//     address with its AOF. With fsync always and no, what it had acknowledged is
//     there: the write to the file comes before the reply, and the machine did
//     not crash. With everysec mostly too, but while a sync is slow Redis puts
//     writes off for up to 2 s, replies all the same, and the kill takes them.
//   - Pause: SIGSTOP. The kernel still accepts connections, nobody answers.
//   - Full: maxmemory is set to one byte under noeviction, so whatever needs
//     memory is refused, however much is freed meanwhile.
//   - Disk: the process may not make its files longer (the limit RLIMIT_FSIZE,
//     set from outside). A write fails with "File too large" where a full disk
//     gives "No space left on device"; Redis treats both alike. With fsync
//     everysec it refuses all writes (MISCONF) and tries again each second; with
//     always it ends at once, as it cannot keep its word. It needs no mount and
//     no right, leaves nothing behind, and exists on Linux only.
//   - Busy: one script holds the server; after 100 ms others are told BUSY.
//   - Snapshot and Rollback: the AOF as it was, put back behind a kill -9. It is
//     what a lost disk write, a restored backup or a failover to a replica that
//     lags looks like.
//   - Failover: kill -9 of the master of a Sentinel set.
//
// # Not promised
//
// A server whose port was taken by somebody else while it was down does not come
// back, and says so.
package server
