package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version can be set when linking (-ldflags "-X main.version=v1.2.3").
var version string

// buildView is the JSON of the version.
type buildView struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // "" where the build was not told
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// build reads what the linker left in the binary. A build with -buildvcs=false,
// or outside a repository, knows no commit.
func build() buildView {
	v := buildView{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
		if v.Version == "" && info.Main.Version != "(devel)" {
			v.Version = info.Main.Version
		}
	}
	if v.Version == "" {
		v.Version = "devel"
	}
	return v
}

func (v buildView) String() string {
	commit := "commit unknown"
	if v.Commit != "" {
		commit = "commit " + v.Commit
	}
	if v.Modified {
		commit += ", modified"
	}
	return "kelpie " + v.Version + " (" + commit + ", " + v.Go + ", " + v.Platform + ")"
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Long: `Print the version, the commit that it was built from as far as the build knew it,
and the Go version. The JSON is {version, commit, modified, go, platform}.`,
		Example: "  kelpie version --json",
		Args:    exactly(0, ""),
		RunE: runs(func(cmd *cobra.Command, _ []string) error {
			out := newOutput(cmd, asJSON)
			if asJSON {
				return out.object(build())
			}
			_ = out.print(build().String(), "\n")
			return out.flush()
		}),
	}
	jsonFlag(cmd, &asJSON, "a JSON object")
	return cmd
}
