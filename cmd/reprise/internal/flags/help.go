package flags

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// MostEveryday is how many flags --help of a command may show.
const MostEveryday = 40

// Help gives a tree of commands its help: flags in sections, with --help-all for those
// that are not needed every day.
func Help(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd) })
	for list := []*cobra.Command{root}; len(list) > 0; list = append(list[1:], list[0].Commands()...) {
		cmd, fl := list[0], list[0].Flags()
		fl.SortFlags = false
		cmd.InitDefaultHelpFlag()
		if cmd.InitDefaultVersionFlag(); cmd.Version != "" {
			version, _ := Sections(fl, GeneralFlags)
			version.mark("version")
			fl.Lookup("version").Usage = "print the version"
		}
		fl.Lookup("help").Usage = "print this help"
		general, _ := Sections(fl, GeneralFlags)
		general.mark("help")
		if fl.Lookup("help-all") == nil {
			general.Var(&helpAll{fl: fl}, "help-all", "print this help with all flags and settings")
			fl.Lookup("help-all").NoOptDefVal = "true"
		}
	}
}

// Completion adds the command that writes completion scripts, to where the root writes by now.
func Completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	completion.Short = "Write the completion script of bash, zsh, fish or PowerShell"
	completion.Long = `Completion writes a script that completes commands and flags in a shell:

  bash        source <(reprise completion bash)
  zsh         source <(reprise completion zsh)
  fish        reprise completion fish | source
  powershell  reprise completion powershell | Out-String | Invoke-Expression

Put that line into the startup file of the shell to have it in every session.`
	for _, shell := range completion.Commands() {
		shell.Example = "  " + shell.CommandPath()
		general, _ := Sections(shell.Flags(), GeneralFlags)
		shell.Flags().VisitAll(func(f *pflag.Flag) { general.mark(f.Name) })
	}
}

// helpAll is the value of --help-all. It asks for help, with everything.
type helpAll struct {
	fl  *pflag.FlagSet
	all bool
}

// Set implements [pflag.Value].
func (h *helpAll) Set(s string) (err error) {
	if h.all, err = strconv.ParseBool(s); err == nil && h.all {
		err = h.fl.Set("help", "true")
	}
	return err
}

// String implements [pflag.Value].
func (h *helpAll) String() string { return strconv.FormatBool(h.all) }

// Type implements [pflag.Value].
func (h *helpAll) Type() string { return "bool" }

// sectionOf is the title of a flag's section, and whether --help shows it.
func sectionOf(f *pflag.Flag) (title string, everyday bool) {
	if t := f.Annotations[titleOf]; len(t) > 0 {
		title = t[0]
	}
	_, everyday = f.Annotations[everydayIn]
	return title, everyday
}

// writeHelp prints what a command does, how it is called, an example, the commands below
// it and its flags.
func writeHelp(w io.Writer, cmd *cobra.Command) {
	width := min(max(cmp.Or(cli.Columns(w), 80), textpage.MinWidth), textpage.MaxWidth)
	all := cli.On(cmd, "help-all")
	long, lists, _ := strings.Cut(cmp.Or(cmd.Long, cmd.Short), ListsBegin)
	if all {
		long += lists
	}
	writeLong(w, strings.TrimSpace(long), width)
	fmt.Fprintf(w, "\nUsage:\n")
	if cmd.Runnable() {
		writeHanging(w, "", cmd.UseLine(), 2, width)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n", cmd.CommandPath())
		writeCommands(w, cmd, width)
	}
	var titles []string
	in := map[string][]*pflag.Flag{}
	left := 0
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		title, everyday := sectionOf(f)
		switch {
		case !Offered(f):
		case !everyday && !all:
			left++
		case cli.IsSetting(f):
			in[settingsTitle] = append(in[settingsTitle], f)
		default:
			if in[title] == nil && title != GeneralFlags {
				titles = append(titles, title)
			}
			in[title] = append(in[title], f)
		}
	})
	for _, title := range append(titles, GeneralFlags, settingsTitle) {
		if len(in[title]) > 0 {
			fmt.Fprintf(w, "\n%s:\n", title)
		}
		for _, f := range in[title] {
			writeFlag(w, f, width, all)
		}
	}
	if left > 0 {
		fmt.Fprintf(w, "\n%d more: %s --help-all\n", left, cmd.CommandPath())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nHelp for a command: %s COMMAND --help\n", cmd.CommandPath())
	}
	if cmd.Example == "" {
		return
	}
	fmt.Fprintf(w, "\nExamples:\n")
	for line := range strings.SplitSeq(cmd.Example, "\n") {
		fmt.Fprintln(w, "  "+strings.Join(doc.CommandLines(strings.TrimSpace(line), width-len("      ")), "\n      "))
	}
}

// settingsTitle stands above the settings in --help-all.
const settingsTitle = "Settings, by --set NAME=VALUE or as NAME: VALUE in a run file"

// ListsBegin stands in the text of a command before long lists, which --help-all has and --help has not.
const ListsBegin = "\f"

// writeLong writes what a command does, wrapped to the width. A line that begins with
// spaces stands alone: it is wrapped below the second of its columns, or below itself.
func writeLong(w io.Writer, long string, width int) {
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			for line := range strings.SplitSeq(text.WrapSoft(strings.Join(paragraph, " "), width), "\n") {
				fmt.Fprintln(w, strings.TrimRight(line, " "))
			}
			paragraph = nil
		}
	}
	for line := range strings.SplitSeq(long, "\n") {
		switch listed := listEntry.FindStringSubmatch(line); {
		case listed != nil:
			flush()
			writeHanging(w, strings.TrimRight(listed[1], " "), listed[2], utf8.RuneCountInString(listed[1]), width)
		case line == "", line[0] == ' ':
			flush()
			fmt.Fprintln(w, line)
		default:
			paragraph = append(paragraph, line)
		}
	}
	flush()
}

// listEntry is a line of a list: a name, and behind two spaces or more what it is.
var listEntry = regexp.MustCompile(`^( {2,}\S+ {2,})(\S.*)$`)

// writeCommands lists the commands below one, by their groups.
func writeCommands(w io.Writer, cmd *cobra.Command, width int) {
	for _, group := range append(cmd.Groups(), &cobra.Group{Title: "Commands"}) {
		var lines strings.Builder
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.GroupID == group.ID {
				writeHanging(&lines, "  "+c.Name(), c.Short, 14, width)
			}
		}
		if lines.Len() > 0 {
			fmt.Fprintf(w, "\n%s:\n%s", group.Title, lines.String())
		}
	}
}

// flagColumn is where the text of a flag begins.
const flagColumn = 28

func writeFlag(w io.Writer, f *pflag.Flag, width int, all bool) {
	name := "      --" + f.Name
	if cli.IsSetting(f) {
		name = "      " + f.Name
	}
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	if value := placeholder(f); value != "" {
		name += " " + value
	}
	_, usage := pflag.UnquoteUsage(f)
	usage, list, _ := strings.Cut(usage, "\n")
	if !all {
		usage = firstClause.FindString(usage)
		if about, values, lists := strings.Cut(usage, ": "); lists && len(about)+len(values) > 2*(width-flagColumn) {
			usage = about
		}
	}
	if def := defaultText(f); def != "" {
		usage += " (default " + def + ")"
	}
	writeHanging(w, name, usage, flagColumn, width)
	if all && list != "" {
		for line := range strings.SplitSeq(list, "\n") {
			fmt.Fprintf(w, "%*s%s\n", flagColumn, "", line)
		}
	}
}

// firstClause is what --help says of a flag, and --help-all says more of.
var firstClause = regexp.MustCompile(`^([^.;(]|[.;][^ ]|\([^)]*\))+`)

// writeHanging writes a name and a text that hangs at a column.
func writeHanging(w io.Writer, name, about string, column, width int) {
	if len([]rune(name)) > column-2 {
		fmt.Fprintln(w, name)
		name = ""
	}
	for line := range strings.SplitSeq(text.WrapSoft(about, width-column), "\n") {
		fmt.Fprintf(w, "%-*s%s\n", column, name, strings.TrimSpace(line))
		name = ""
	}
}

// defaultText is the default of a flag as people write it, empty where it stands for
// none.
func defaultText(f *pflag.Flag) string {
	switch def := f.DefValue; f.Value.Type() {
	case "bool":
		if def == "true" {
			return "true"
		}
	case "duration":
		if d, err := time.ParseDuration(def); err == nil && d > 0 {
			short := d.String()
			// Without units that are zero: 10m and not 10m0s.
			for _, none := range []string{"m0s", "h0m"} {
				if cut, ok := strings.CutSuffix(short, none); ok {
					short = cut + none[:1]
				}
			}
			return short
		}
	case "share":
		if share, err := strconv.ParseFloat(def, 64); err == nil && share > 0 {
			return strconv.FormatFloat(share*100, 'g', 6, 64) + "%"
		}
	case "stringArray", "stringSlice":
		return strings.Trim(def, "[]")
	default:
		if def != "0" && !strings.HasPrefix(def, "-") {
			return def
		}
	}
	return ""
}

// Wants is how many arguments a command takes, and the question to who gives too few.
func Wants(least, most int, question string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		use := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		if cli.On(cmd, "print-config") {
			least = 0
		}
		switch {
		case len(args) < least:
			return fmt.Errorf("%s %s", question, strings.ReplaceAll(use, "[--url URL]", "--url URL"))
		case len(args) > most:
			given := slices.Clone(args[most:])
			for i := range given {
				given[i] = strconv.Quote(given[i])
			}
			return fmt.Errorf("too many arguments: leave out %s: %s", strings.Join(given, " "), use)
		}
		return nil
	}
}
