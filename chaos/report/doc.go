// Package report writes down what the judge of a chaos run said: report.json for
// programs, report.html for people, and a table for the terminal. It decides
// nothing. What it shows beside the verdict (timeline, faults, how busy the
// machine was) it takes from the history as it is.
//
// # report.json
//
// One object. Its keys come in this order, and those of a schema keep their
// meaning: new ones may join, none changes. Lists are never null.
//
//	verdict     PASS, FAIL or UNKNOWN
//	why         one sentence for each thing that keeps it from PASS; missing if nothing does
//	invariants  each rule: name, sentence, verdict, checked, count of violations, details
//	coverage    what had to happen: name, have, need
//	measures    figures by name; one that could not be taken is missing
//	bars        figures that had to be reached: measure, most, have, verdict
//	kills       what followed each kill of a node that held jobs, µs after the kill
//	duplicates  second runs of an attempt: job, runs, cause, fault
//	recovery    histogram of kills, ms
//	lateness    histogram of delayed jobs, ms
//	lost        accepted jobs that are nowhere
//	took        µs that the judge needed
//	schema      number of this schema, see Schema
//	run         what was to happen, as in run.json: seed, command, settings, plan
//	faults      what did happen of the plan, in the order of time, see Fault
//	machine     how busy the machine was, see Machine
//
// The first dozen are check.Verdict, the others are Document's.
//
// # report.html
//
// One file that asks nobody for anything: style and charts are inside, it has no
// script, and a policy in its head forbids every request. Charts are SVG whose
// colours are variables of the page's style, so they follow the reader's light or
// dark scheme and stay readable in print. Its size is bounded, whatever the run
// was: long lists are cut, with a sentence that says so, and the whole of them is
// in report.json; lines have at most one point for every second pixel.
//
// Not promised: that texts and layout of the page and of the table stay as they
// are. Programs read report.json.
package report
