package main

import (
	"bytes"
	"errors"
	"os"

	"github.com/spf13/cobra"
)

// Cobra brings commands of its own, help and completion, and writes help and
// version itself. Here they are held to the rules of ours: what is unknown is an
// error, and so is what could not be written.

func addCobrasOwn(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.CompletionOptions.HiddenDefaultCmd = false
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = knownTopic
		case "completion":
			needOne(cmd, cmd.Commands())
		}
	}
}

// knownTopic refuses help on what is not there, for which cobra prints that of
// the root.
func knownTopic(cmd *cobra.Command, args []string) error {
	topic, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) == 0 {
		return err
	}
	return knownCommand(topic, rest)
}

// watchHelp makes help an output like any other. The function that it returns
// says, after a command, whether its help could not be written.
func watchHelp(root *cobra.Command) (unwritten func() error) {
	help, failure := root.HelpFunc(), error(nil)
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text bytes.Buffer
		stdout := cmd.OutOrStdout()
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(stdout)
		out := newOutput(cmd, false)
		_ = out.print(text.String()) // flush has the error
		failure = out.flush()
	})
	return func() error { return failure }
}

// writeFailure returns what ours would say of a write to stdout that failed for
// cobra, nil if err is something else.
func writeFailure(err error) error {
	var path *os.PathError
	if !errors.As(err, &path) || path.Op != "write" {
		return nil
	}
	var out output
	out.keep(err)
	return out.err
}
