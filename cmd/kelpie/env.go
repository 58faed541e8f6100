package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envName returns the variable of a flag: KELPIE_DRAIN_TIMEOUT.
func envName(flag string) string {
	return "KELPIE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// eitherKey annotates flags of which only one can be given. One that stands on
// the command line silences the variables of the others.
const eitherKey = "kelpie-either"

// either declares that of these flags only one can be given.
func either(cmd *cobra.Command, names ...string) {
	cmd.MarkFlagsMutuallyExclusive(names...)
	for _, name := range names {
		_ = cmd.Flags().SetAnnotation(name, eitherKey, []string{names[0]}) // exists: MarkFlags panics else
	}
}

// fromEnv gives each flag that is not on the command line the value of its
// variable, if that is not empty. The flag does not count as changed, so what
// depends on "given on the command line" still can tell.
func fromEnv(flags *pflag.FlagSet, getenv func(string) string) error {
	chosen := map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) {
		if group := f.Annotations[eitherKey]; f.Changed && group != nil {
			chosen[group[0]] = true
		}
	})
	var err error
	taken := map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) {
		value, group := getenv(envName(f.Name)), f.Annotations[eitherKey]
		if err != nil || f.Changed || value == "" || f.Name == "help" || group != nil && chosen[group[0]] {
			return
		}
		if group != nil {
			if other := taken[group[0]]; other != "" {
				err = envFault(f, value, fmt.Errorf("cannot be set together with %s", envName(other)))
				return
			}
			taken[group[0]] = f.Name
		}
		if e := f.Value.Set(value); e != nil {
			err = envFault(f, value, e)
		}
	})
	return err
}

func envFault(f *pflag.Flag, value string, err error) error {
	return &fault{err: valueError(envName(f.Name), f, value, err), code: exitConfig}
}

// applyEnv runs before every command.
func applyEnv(cmd *cobra.Command, _ []string) error {
	if err := fromEnv(cmd.Flags(), os.Getenv); err != nil {
		return ran{err}
	}
	return nil
}
