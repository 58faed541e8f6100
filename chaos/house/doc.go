// Package house holds the rules of this house as tests: which package may
// import which (arrows), what may be linked where (walls), names that say
// nothing, and sizes. It reads the source with go/parser, for every platform at
// once, and needs neither a build nor a Redis.
//
// A rule that is in the way can be changed, here and with the reason: that is
// what the tests are for. What they do not look at: tests' sizes, and the use
// of reflection or go:linkname to get around an arrow.
package house
