// Package plant takes one protection at a time out of Kelpie, so that the judge
// of chaos runs can be judged: a build without it must FAIL a run, by the
// invariant that names it, and the build with all of them must PASS the same
// plan.
//
// A bug is a few edits of source files. They become other files under
// "go build -overlay", so the product's own sources carry no switch, and neither
// the judge nor the runner can know what they look at: they come from a clean
// build, and only nodes and producers from the other one.
//
// An edit names a text that must stand in its file exactly once. A test holds
// that for each bug, and that each build compiles, so a bug that no longer fits
// the code is seen at once.
//
// # Not promised
//
// That a bug shows in any run: each has its moment. The scenarios named here are
// made to bring it about (package scenario), and the self-test runs each once.
package plant
