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
	cmd := &cobra.Command{
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
			pages := map[string][]byte{}
			overwrite, _ := cmd.Flags().GetBool("overwrite")
			for list := []*cobra.Command{cmd.Root()}; len(list) > 0; list = append(list[1:], list[0].Commands()...) {
				if c := list[0]; c == cmd.Root() || c.IsAvailableCommand() {
					path := filepath.Join(args[0], strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
					if _, err := os.Stat(path); err == nil && !overwrite {
						return cli.Usagef("%s exists: name another folder, or replace its pages with --overwrite", path)
					}
					pages[path] = flags.ManPage(c, cli.Version)
				}
			}
			for path, page := range pages {
				err := trace.WriteFile(path, 0o644, func(w io.Writer) error {
					_, err := w.Write(page)
					return err
				})
				if err != nil {
					return err
				}
			}
			cli.Notef(cmd, "%d manual pages in %s", len(pages), args[0])
			return nil
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	results.Bool("overwrite", false, "replace files that exist")
	return cmd
}
