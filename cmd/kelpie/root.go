package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kelpiehq/kelpie/cmd/kelpie/internal/demo"
)

const rootHelp = `Kelpie runs background jobs on a herd of nodes that share one job space in Redis.
Kill any node in the middle of any job and no job is lost.

Data goes to stdout, the rest to stderr. Each flag has an environment variable,
such as KELPIE_REDIS for --redis or KELPIE_DRAIN_TIMEOUT for --drain-timeout; the
flag wins. A password is better kept in KELPIE_REDIS than on the command line,
where every user of the machine can read it.

` + exitHelp

const rootExample = `  kelpie demo                                      # see it work, nothing to install
  kelpie node --webhook-allow 127.0.0.0/8          # run a node
  kelpie enqueue -k webhook '{"url":"http://127.0.0.1:8080/hook","body":{"n":1}}'
  kelpie queues
  kelpie jobs list --state dead --json`

func newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:               "kelpie",
		Short:             "A job scheduler that survives the death of its nodes",
		Long:              rootHelp,
		Example:           rootExample,
		Version:           build().Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: applyEnv,
	},
		newDemo(), newNode(), newEnqueue(), newQueues(), newJobs(), newNodes(), newDead(), newChaos(), newVersion(),
	)
	root.RunE = func(cmd *cobra.Command, args []string) error { return cmd.Help() }
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("kelpie {{.Version}}\n")
	addCobrasOwn(root)
	return root
}

// newDemo marks what the demo returns as the end of a command that ran.
func newDemo() *cobra.Command {
	cmd := demo.Command(build().Version)
	do := cmd.RunE
	cmd.Args = exactly(0, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := do(cmd, args); err != nil {
			return ran{err}
		}
		return nil
	}
	return cmd
}

// group is a command that only has others below it.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	needOne(cmd, below)
	return cmd
}

// needOne refuses a command without one of those below it. Left alone, cobra
// prints help and succeeds, also where the one that is named is unknown.
func needOne(cmd *cobra.Command, below []*cobra.Command) {
	cmd.Args = knownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return usage("%s: a command is missing, one of %s", cmd.CommandPath(), names(below))
	}
}

func names(cmds []*cobra.Command) string {
	var list []string
	for _, c := range cmds {
		if !c.Hidden {
			list = append(list, c.Name())
		}
	}
	return strings.Join(list, ", ")
}

func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usage("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return withHint("did you mean "+strings.Join(near, " or ")+"?", err)
	}
	return err
}

// exactly and atMost are cobra's rules for arguments with sentences that name
// what is expected.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return usage("%s: %s is missing", cmd.CommandPath(), what)
		case len(args) > n:
			return usage("%s: unexpected argument %q", cmd.CommandPath(), args[n])
		}
		return nil
	}
}

func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%s: unexpected argument %q", cmd.CommandPath(), args[n])
		}
		return nil
	}
}

// flagError says "flag value: rule".
func flagError(_ *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return usage("%w", valueError("--"+value.GetFlag().Name, value.GetFlag(), value.GetValue(), value.Unwrap()))
	}
	return usage("%w", err)
}

// valueError names a setting, its value unless that may be secret, and the rule.
func valueError(name string, f *pflag.Flag, value string, err error) error {
	if _, secret := f.Value.(secretive); secret {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s %q: %w", name, clip(value), plainCause(err))
}

// plainCause drops what strconv says around the reason.
func plainCause(err error) error {
	if text := err.Error(); strings.HasPrefix(text, "strconv.") {
		return fmt.Errorf("must be %s", strconvRule(text))
	}
	return err
}

func strconvRule(text string) string {
	if strings.HasPrefix(text, "strconv.ParseBool") {
		return "true or false"
	}
	return "a whole number in range"
}

func clip(s string) string {
	const most = 120
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
