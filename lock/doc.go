// Package lock elects one process among many with a lock in Redis, and turns
// holding that lock into a tenure: a stretch of time with a beginning, a
// context that ends with it, and a guarantee that the work done under it has
// returned before the same process competes again.
//
//	candidate ─obtain▶ tenure ─lost, expired, hung, resigned, fault▶ candidate
//	                          └─the context of Run ends▶ released, Run returns
//
// The lock is one key, written by bsm/redislock v0.10.0: a random token, new
// for every tenure, followed by the session of the holder. redislock compares
// the whole value when it refreshes and releases, but takes a key over when
// only the token matches, even as a prefix. So the token is always redislock's
// own, and the session is metadata. A process that starts again has a new
// session and a new token: it never takes the lock of its former self for its
// own, it waits for the expiry like everybody else.
//
// # Trust
//
// A tenure is trusted until the start of its last successful refresh plus two
// thirds of the TTL, by the monotonic clock of this process. Redis begins to
// count the TTL after that instant, so a slow network shortens a tenure and
// never stretches it. A refresh is one attempt with a short timeout of its own:
//
//   - done: the trust is extended.
//   - Redis has another value, or none: lost, the tenure ends at once.
//   - anything else (no answer, an error): tried again until the trust ends.
//
// No refresh is sent while Options.Alive says that the work hangs; the tenure
// then ends like one that Redis did not answer, and the key expires. When a
// tenure ends its context is cancelled with a cause, the function is waited
// for, and only then is the key released (with a context of its own: the one
// that just ended could not do it) and the campaign begun again. A function
// that ignores its context keeps this process out of the race, not the others:
// they take over when the key expires.
//
// # Campaign
//
// A candidate tries about once per Options.Retry, jittered. If it is told by
// Options.Held that somebody holds the lock it makes no call at all, save one
// attempt (and one look at the key) within every two TTLs, since a hint may be
// wrong. Nudge makes it try now. While Redis fails it tries half as often.
// Whoever ends one tenure by an error of its own function, or resigns, rests
// before the next try, longer each time and deaf to nudges, so that others get
// their chance.
//
// A key that can never expire (put there by hand, left over from something
// else, or of another type) is not taken and not removed: it may be somebody's
// data. Every candidate reports it once, as an error that names the remedy,
// within two TTLs, and Stats.Blocked says so for as long as it stands.
//
// # Not promised
//
// Mutual exclusion. A paused process wakes up believing in a tenure that is
// over, for as long as it takes to ask Valid; a suspended machine does not
// even count the time in its monotonic clock; a clock step of the Redis host
// ends a key early; a failover may lose it. Safety does not rest on the lock:
// it only saves others the work. Two holders at once must be harmless, which
// is why each tenure carries an epoch that the store checks with every move
// (Tenure.SetEpoch keeps it; it is made elsewhere).
//
// Fairness is not promised either, and an attempt to obtain whose answer was
// lost may leave a key behind that nobody owns until its TTL has passed.
package lock
