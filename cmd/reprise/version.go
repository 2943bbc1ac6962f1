package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
)

// A build is what is known of this binary. A field is empty where it is not known.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // with -dirty behind it when files were changed
	Date     string `json:"commit_date"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, commit and platform",
		Example: "  reprise version --json",
		Args:    flags.Wants(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if cli.On(cmd, "json") {
				return cli.WriteJSON(cmd.OutOrStdout(), b)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "reprise %s\n", b.Version)
			for _, line := range [][2]string{{"commit", b.Commit}, {"of", b.Date}, {"built with", b.Go},
				{"for", b.Platform}} {
				if line[1] != "" && err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "  %-11s %s\n", line[0], line[1])
				}
			}
			return err
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	results.Bool("json", false, "print JSON")
	return cmd
}

// thisBuild asks the binary what it was made of.
func thisBuild() build {
	b := build{Version: cli.Version, Commit: cli.Commit, Date: cli.CommitDate, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok || b.Commit != "" {
		return b
	}
	dirty := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-dirty"
			}
		}
	}
	if b.Commit != "" {
		b.Commit += dirty
	}
	return b
}
