package queue

import (
	stdflag "flag" // flag is a function of this package
	"testing"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

func TestMain(m *testing.M) {
	for name, value := range map[string]string{ // the command line may say otherwise
		"rapid.nofailfile": "true", // a failure prints its seed; the tree stays clean
		"rapid.checks":     "60",
		"rapid.steps":      "40",
		"rapid.shrinktime": "3s",
	} {
		if err := stdflag.Set(name, value); err != nil {
			panic(err)
		}
	}
	stdflag.Parse()
	redistest.Main(m)
}

// lacks is all that miniredis does not have and a test of this package needs,
// with the reason. Everything else runs on both stores.
var lacks = map[string]string{
	"maxmemory": "miniredis has no memory limit, so nothing is ever refused for want of it",
	"config":    "miniredis has no CONFIG, and INFO with clients and stats only: it reports itself as embedded",
	"replicas":  "miniredis replicates to nobody: its WAIT answers 0 at once and never blocks",
	"restart":   "miniredis lives in this process and cannot be killed or restarted apart from it",
}

// needs skips a test on miniredis for a reason of the list.
func (s *space) needs(what string) {
	s.t.Helper()
	why, listed := lacks[what]
	if !listed {
		s.t.Fatalf("what miniredis lacks is listed in main_test.go; %q is not", what)
	}
	if s.kind == "miniredis" {
		s.t.Skip(why)
	}
}
