// Package redistest gives tests a private Redis, and the means to hurt it.
//
//	Client(t)     the package's own server: one per test binary, started at the
//	              first call; tests share it in parallel, each below its Prefix(t)
//	Dedicated(t)  a server of this test alone: kill it, pause it, reconfigure it
//	Both(t, f)    f once against the package's server, once against miniredis
//	Main(m)       TestMain: run, stop the server, look for leaked goroutines
//
// A server is a local process or a container; tests do not see which.
//
//   - process: redis-server or valkey-server, 6.2 or later, from the PATH or
//     from .cache/bin, where "make test" puts one. It listens on 127.0.0.1, on
//     a free port below the range that the kernel gives to clients: a client
//     that dials a dead port of that range may connect to itself and keep the
//     server from coming back. It is never 6379.
//   - container: KELPIE_TEST_IMAGE (default redis:7-alpine) through
//     testcontainers-go, on a published port that stays the same.
//
// KELPIE_TEST_BACKEND (process, container) chooses, and KELPIE_TEST_REDIS names
// the program; "make test" sets both. Without them the first that is there is
// taken. When there is none, a test fails and says what to do: it never skips.
//
// A watchdog, a shell that waits for the end of a pipe, kills the server and
// removes its files when the test process dies, whatever it dies of. Not
// promised: that a server survives its test process, or that a container is
// removed after a kill -9 where the docker command is missing.
package redistest
