// Command kelpie is the whole of Kelpie on the command line: the node that runs
// jobs, and the tools that enqueue, look and mend.
//
// Data goes to stdout, everything else to stderr, so that each command can stand
// in a pipe. An error is one sentence that starts with "kelpie:", often with a
// hint below it. With --json a command prints one JSON value; a list is an array,
// [] when it is empty, written item by item so that a list of any length fits in
// memory.
//
// Each flag has an environment variable (--drain-timeout: KELPIE_DRAIN_TIMEOUT);
// the flag wins. The exit codes are those of sysexits.h where one fits; they are
// in exit.go and in the help of the root command.
//
// Not promised: the human tables. They may change with any release; scripts read
// the JSON.
package main
