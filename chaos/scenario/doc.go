// Package scenario says what a chaos run does: the named scenarios, and the plan
// of faults that each draws from a seed.
//
// A scenario knows what is struck, when and whom by role. It knows nothing of how
// a fault is done (package fault), of what the jobs are (package traffic draws
// them from the same seed) or of how a run is judged; it names what the judge
// must have seen for the run to count (needs) and which figures must be reached
// (bars).
//
// The same seed and options give the same plan, to the byte. What really happens
// may differ: which node holds jobs at that moment is for the run to find out.
package scenario
