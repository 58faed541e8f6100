package main

import (
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/kelpiehq/kelpie/chaos/traffic"
)

// newChaosProduce is a producer of a chaos run, a process of its own. The runner
// starts it; its flags are no promise.
func newChaosProduce() *cobra.Command {
	var o traffic.Options
	var s space
	var number *int
	cmd := &cobra.Command{
		Use: "produce", Short: "Be a producer of a chaos run", Hidden: true,
		Args: exactly(0, ""),
		RunE: runs(func(cmd *cobra.Command, _ []string) error {
			if o.Dir == "" || number == nil {
				return usage("--dir and --number are missing: they say which part of which run")
			}
			redis.SetLogger(noLog{})
			o.Redis, o.Prefix, o.Number = s.redis.text, s.prefix, *number
			o.Log = newLog(cmd.ErrOrStderr(), zerolog.InfoLevel)
			return traffic.Produce(cmd.Context(), o)
		}),
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&o.Dir, "dir", "", "`FOLDER` of the run")
	cmd.Flags().Var(intFlag(&number, within(1, 1000)), "number", "of the producer, from 1")
	return cmd
}
