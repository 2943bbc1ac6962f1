package flags

import (
	"fmt"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ManPage is the manual page of a command, with all its flags in their sections.
func ManPage(cmd *cobra.Command, version string) []byte {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	var b strings.Builder
	heading := func(title string) { fmt.Fprintf(&b, "\n# %s\n\n", title) }
	literal := func(text string) {
		for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
			b.WriteString("    " + line + "\n") // as it stands, which keeps its lists
		}
	}
	fmt.Fprintf(&b, "%% %q 1 %q %q %q\n", strings.ToUpper(name), "", "reprise "+version, "Manual of Reprise")
	heading("NAME")
	fmt.Fprintf(&b, "%s - %s\n", name, plain(cmd.Short))
	heading("SYNOPSIS")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "**%s**\n", plain(cmd.UseLine()))
	} else {
		fmt.Fprintf(&b, "**%s** COMMAND\n", cmd.CommandPath())
	}
	if cmd.Long != "" {
		heading("DESCRIPTION")
		literal(cmd.Long)
	}
	if cmd.Example != "" {
		heading("EXAMPLES")
		literal(cmd.Example)
	}
	section := map[string]*strings.Builder{}
	var titles []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		title, _ := sectionOf(f)
		if f.Hidden {
			return
		}
		if section[title] == nil {
			section[title] = new(strings.Builder)
			titles = append(titles, title)
		}
		manFlag(section[title], f)
	})
	for _, title := range titles {
		heading(strings.ToUpper(title))
		b.WriteString(section[title].String())
	}
	if cmd.HasAvailableSubCommands() {
		heading("COMMANDS")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, "**%s**(1)\n: %s\n\n", name+"-"+c.Name(), plain(c.Short))
			}
		}
	}
	return md2man.Render([]byte(b.String()))
}

func manFlag(b *strings.Builder, f *pflag.Flag) {
	if f.Shorthand != "" {
		fmt.Fprintf(b, "**-%s**, ", f.Shorthand)
	}
	fmt.Fprintf(b, "**--%s**", f.Name)
	if value := placeholder(f); value != "" {
		fmt.Fprintf(b, " _%s_", plain(value))
	}
	_, usage := pflag.UnquoteUsage(f)
	if def := defaultText(f); def != "" {
		first, list, _ := strings.Cut(usage, "\n")
		usage = first + " (default " + def + ")\n" + list
	}
	fmt.Fprintf(b, "\n: %s\n\n", plain(strings.Join(strings.Fields(usage), " ")))
}

// plain escapes what Markdown would read as marks.
func plain(text string) string {
	return strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "<", "\\<", ">", "\\>", "[", "\\[", "]", "\\]", "#", "\\#").Replace(text)
}
