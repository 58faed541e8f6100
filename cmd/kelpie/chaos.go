package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kelpiehq/kelpie/chaos"
	"github.com/kelpiehq/kelpie/chaos/check"
	reports "github.com/kelpiehq/kelpie/chaos/report"
	"github.com/kelpiehq/kelpie/chaos/scenario"
)

func newChaos() *cobra.Command {
	return group(&cobra.Command{
		Use:   "chaos",
		Short: "Prove with real processes that no job is lost, or show how",
		Long: `Start a herd of real nodes on a real Redis, break it by a plan drawn from a seed,
and judge what it did: every transition in Redis, every call of a producer and
every start and end of a handler is written down and held against the rules.

A run needs a redis-server or valkey-server on the PATH, or --redis; a scenario
takes about a minute. Its folder holds the whole history, report.json and
report.html.`,
		Example: `  kelpie chaos run
  kelpie chaos run --scenario kills --seed 7
  kelpie chaos check chaos-kills-7`,
	}, newChaosRun(), newChaosCheck(), newChaosList(), newChaosProduce())
}

const chaosRunHelp = `Run a scenario and judge it. The plan of faults and work follows from the seed:
the same seed gives the same plan. What then happens depends on the machine.

Without --redis the run starts Redis servers of its own, in its folder. With it
the run uses a prefix of its own there, removes it afterwards unless the verdict
is FAIL, and leaves out the faults on Redis itself, by name.

The folder of the run (--report) keeps the history, the logs of all processes,
report.json and report.html. The JSON is report.json: it begins with verdict,
why, invariants, coverage, measures and bars; the rest is told in the package
documentation of chaos/report.

The verdict is PASS, FAIL or UNKNOWN: too little happened to prove anything, or
the set-up did not work. Exit code 0: PASS; 1: FAIL; 3: UNKNOWN, or no verdict
because the run did not come about. Ctrl-C mends what is broken, ends all
processes and judges what there is; exit 130.`

// chaosFlags are the flags of a run.
type chaosFlags struct {
	scenario scenario.Scenario
	nodes    *int
	workers  *int
	jobs     *int
	duration time.Duration
	seed     uint64
	seeded   *parsed[uint64]
	redis    redisURL
	dir      string
	kelpie   string
	skewed   string
	netns    bool
	asJSON   bool
}

func newChaosRun() *cobra.Command {
	cmd, _ := chaosRunCommand()
	return cmd
}

func chaosRunCommand() (*cobra.Command, *chaosFlags) {
	f := &chaosFlags{}
	cmd := &cobra.Command{
		Use: "run", Short: "Run a scenario and judge it", Long: chaosRunHelp,
		Example: `  kelpie chaos run                                       # faults of all kinds, drawn
  kelpie chaos run --scenario kills
  kelpie chaos run --scenario rolling --nodes 7 --jobs 30000 --duration 1m
  kelpie chaos run --seed 42 --json | jq -r .verdict
  kelpie chaos run --redis redis://10.0.0.5:6379 --scenario stop-long`,
		Args: exactly(0, ""),
		RunE: runs(f.run),
	}
	fs := cmd.Flags()
	f.scenario, _ = scenario.Find("mixed")
	fs.Var(&parsed[scenario.Scenario]{v: &f.scenario, text: f.scenario.Name, word: "NAME", parse: parseScenario}, "scenario",
		`what is done; "kelpie chaos list" names them`)
	_ = cmd.RegisterFlagCompletionFunc("scenario", completeScenario) // the flag is there
	fs.Var(intFlag(&f.nodes, within(1, 50)), "nodes", "processes of nodes (default the scenario's)")
	fs.Var(intFlag(&f.workers, within(1, 1000)), "workers", "jobs at a time of each node (default the scenario's)")
	fs.Var(intFlag(&f.jobs, within(1, 10_000_000)), "jobs", "jobs to enqueue (default the scenario's)")
	fs.Var(positiveFlag(&f.duration, ""), "duration", "how long faults and work go on (default the scenario's)")
	f.seeded = &parsed[uint64]{v: &f.seed, word: "S", parse: parseSeed}
	fs.Var(f.seeded, "seed", "what the plan is drawn from (default drawn, and told)")
	fs.Var(&f.redis, "redis", "address of a Redis of your own (default: the run starts its own)")
	fs.StringVar(&f.dir, "report", "", "`FOLDER` of the history and the report (default chaos-<scenario>-<seed>)")
	fs.StringVar(&f.kelpie, "kelpie", "", "`FILE` of the binary under test (default this one)")
	fs.StringVar(&f.skewed, "skewed", "", "`FILE` of it with a clock that can be off (default: built from the sources where a scenario needs it)")
	fs.BoolVar(&f.netns, "netns", false, "give each node a network namespace of its own (Linux, root)")
	jsonFlag(cmd, &f.asJSON, "report.json")
	return cmd, f
}

func within(least, most int64) func(int64) error {
	return func(n int64) error {
		if n < least || n > most {
			return fmt.Errorf("must be %d to %d", least, most)
		}
		return nil
	}
}

func parseSeed(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, errors.New("must be a whole number from 0 to 18446744073709551615")
	}
	return n, nil
}

func parseScenario(name string) (scenario.Scenario, error) {
	s, ok := scenario.Find(name)
	if !ok {
		return s, errors.New(`must be one of those that "kelpie chaos list" names`)
	}
	return s, nil
}

func completeScenario(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, s := range scenario.All() {
		names = append(names, cobra.CompletionWithDesc(s.Name, s.Says))
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// options are what the flags say.
func (f *chaosFlags) options(cmd *cobra.Command) (chaos.Options, error) {
	if !f.seeded.given {
		f.seed = rand.Uint64N(1 << 32) // short enough to be typed
	}
	o := chaos.Options{
		Scenario: f.scenario, Redis: f.redis.text, Dir: f.dir, Kelpie: f.kelpie, Skewed: f.skewed, Netns: f.netns,
		Version: build().Version, Commit: build().Commit,
		Draw: scenario.Options{Seed: f.seed, Duration: f.duration, Foreign: f.redis.text != ""},
	}
	for _, pair := range []struct{ from, to *int }{{f.nodes, &o.Draw.Nodes}, {f.workers, &o.Draw.Workers}, {f.jobs, &o.Draw.Jobs}} {
		if pair.from != nil {
			*pair.to = *pair.from
		}
	}
	if o.Dir == "" {
		o.Dir = fmt.Sprintf("chaos-%s-%d", f.scenario.Name, f.seed)
	}
	if o.Kelpie == "" {
		var err error
		if o.Kelpie, err = os.Executable(); err != nil {
			return o, failed("path of this program: %w", err)
		}
	}
	o.Command = f.command(cmd.Flags())
	return o, nil
}

// command repeats the run, but for the secrets in an address.
func (f *chaosFlags) command(flags *pflag.FlagSet) string {
	words := []string{"kelpie chaos run", "--scenario", f.scenario.Name, "--seed", strconv.FormatUint(f.seed, 10)}
	flags.VisitAll(func(flag *pflag.Flag) {
		value := flag.Value.String()
		known := slices.Contains([]string{"scenario", "seed", "report", "json", "help"}, flag.Name)
		if known || value == "" || value == "false" {
			return
		}
		words = append(words, "--"+flag.Name)
		if flag.Value.Type() != "bool" {
			words = append(words, shellWord(value))
		}
	})
	return strings.Join(words, " ")
}

// shellWord quotes a text for a shell, where it needs it.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (f *chaosFlags) run(cmd *cobra.Command, _ []string) error {
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	redis.SetLogger(noLog{})
	show := newChaosShow(cmd.ErrOrStderr())
	o.Tell, o.Show = show.tell, show.show
	r, err := chaos.Run(cmd.Context(), o)
	show.end()
	if r == nil {
		return explainChaos(err)
	}
	return errors.Join(publish(cmd, r, f.asJSON), err)
}

// explainChaos gives a run that did not come about its exit code.
func explainChaos(err error) error {
	if code := codeOf(err); code != exitFailed {
		return err
	}
	return withCode(exitUnproven, err)
}

// publish prints the verdict, and returns it as an error unless it is PASS.
func publish(cmd *cobra.Command, r *chaos.Result, asJSON bool) error {
	out := newOutput(cmd, asJSON)
	out.strict = true
	if asJSON {
		text, err := os.ReadFile(r.Dir + "/" + reports.JSONFile)
		if err != nil {
			return failed("report: %w", err)
		}
		_ = out.print(string(text))
	} else if err := reports.Table(out.w, r.Verdict); err != nil {
		return failed("stdout: %w", err)
	}
	if err := out.flush(); err != nil {
		return err
	}
	hint := "the report is " + r.Dir + "/" + reports.HTMLFile
	switch r.Verdict.Verdict {
	case check.Pass:
		fmt.Fprintln(cmd.ErrOrStderr(), hint)
		return nil
	case check.Fail:
		return newFault(exitFailed, hint, "verdict FAIL: %s", strings.Join(r.Verdict.Why, "; "))
	default:
		return newFault(exitUnproven, hint, "verdict UNKNOWN: %s", strings.Join(r.Verdict.Why, "; "))
	}
}

func newChaosCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check FOLDER", Short: "Judge the history of a run again",
		Long: `Judge a kept history again and write its report anew. Nothing is run. The JSON and
the exit codes are those of "kelpie chaos run".`,
		Example: "  kelpie chaos check chaos-kills-7 --json | jq .why",
		Args:    exactly(1, "the folder of a run"),
		RunE: runs(func(cmd *cobra.Command, args []string) error {
			r, err := chaos.Check(args[0])
			if errors.Is(err, os.ErrNotExist) && r == nil {
				return newFault(exitNotFound, `"kelpie chaos run" makes one`, "%s holds no chaos run", args[0])
			}
			if err != nil {
				return newFault(exitData, "", "%w", err)
			}
			return publish(cmd, r, asJSON)
		}),
	}
	jsonFlag(cmd, &asJSON, "report.json")
	return cmd
}

// scenarioView is the JSON of a scenario.
type scenarioView struct {
	Name  string   `json:"name"`
	Says  string   `json:"says"`
	Cases []string `json:"cases"`
}

func newChaosList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the scenarios",
		Long: `List the scenarios with what each does, and the cases of docs/cases.md that it
stands for. The JSON is an array of {name, says, cases}.`,
		Example: "  kelpie chaos list --json | jq -r '.[].name'",
		Args:    exactly(0, ""),
		RunE: runs(func(cmd *cobra.Command, _ []string) error {
			l := newOutput(cmd, asJSON).listing("SCENARIO", "CASES", "WHAT IT DOES")
			for _, s := range scenario.All() {
				view := scenarioView{s.Name, s.Says, append([]string{}, s.Cases...)}
				if err := l.add(view, s.Name, strings.Join(s.Cases, " "), s.Says); err != nil {
					return err
				}
			}
			return l.end(cmd.ErrOrStderr(), "no scenarios")
		}),
	}
	jsonFlag(cmd, &asJSON, "a JSON array")
	return cmd
}
