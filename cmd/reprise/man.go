package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/trace"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages, one for each command",
		Long: `Man writes a manual page (section 1) for every command: reprise.1, reprise-replay.1 and
so on. Read them in place, or put them where man looks:

  man ./man1/reprise-replay.1
  reprise man ~/.local/share/man/man1 && man reprise-replay`,
		Example: "  reprise man man1",
		Args:    flags.Wants(1, 1, "to which directory?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			pages := 0
			for list := []*cobra.Command{cmd.Root()}; len(list) > 0; list = append(list[1:], list[0].Commands()...) {
				if c := list[0]; c == cmd.Root() || c.IsAvailableCommand() {
					name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
					page := flags.ManPage(c, cli.Version)
					err := trace.WriteFile(filepath.Join(args[0], name), 0o644, func(w io.Writer) error {
						_, err := w.Write(page)
						return err
					})
					if err != nil {
						return err
					}
					pages++
				}
			}
			cli.Notef(cmd, "%d manual pages in %s", pages, args[0])
			return nil
		},
	}
}
