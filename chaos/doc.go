// Package chaos runs the proof: it starts real nodes on a real Redis, breaks
// them by plan, and has judged what they left behind.
//
// The roles do not know each other's insides. This package ties them:
//
//	scenario   what is to happen, drawn from a seed
//	traffic    the jobs, and who enqueues them
//	fault      what breaks, and how it is mended
//	watch      writes down what happens        ──▶ history, a folder
//	check      the judge: sees history alone
//	report     the verdict for programs and for people
//
// A run has these steps. Each is undone in the reverse order, whatever happens:
//
//  1. The folder and run.json. Nothing has started yet.
//  2. The kennel, which ends every process, also when this one is killed.
//  3. Redis, or somebody's own with a prefix of this run; a proxy in front of it
//     for each node and one for the producers. The log of transitions is
//     switched on before anybody could change anything.
//  4. The nodes, until they see each other and one sweeps; the collector.
//  5. Begin: producers, and the faults by plan, each on its own time.
//  6. Everything healed. The herd has Settings.Settle to come to rest; final.json.
//  7. The nodes drain and leave; the collector takes the rest of the log.
//  8. The judge, and the report.
//
// A run that is cut short, by a signal or by a set-up that does not work, heals
// what it broke, ends its processes and leaves its folder. It has no final.json,
// so its verdict is UNKNOWN at best.
//
// The binary under test is a path, so that a build with a planted bug can be
// tested by the judge of a clean one.
package chaos
