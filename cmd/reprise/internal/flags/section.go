package flags

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
)

// A Section declares flags of one named group of a command's help. Its methods are those
// of [pflag.FlagSet]; numbers are read by package quantity.
type Section struct {
	fl       *pflag.FlagSet
	title    string
	everyday bool
}

// Sections declares flags under a title: those that --help shows, and the rest that
// --help-all adds.
func Sections(fl *pflag.FlagSet, title string) (everyday, rest Section) {
	return Section{fl, title, true}, Section{fl, title, false}
}

// Titles of the sections that several commands have.
const (
	EndpointFlags  = "Endpoint"
	LoadFlags      = "Load"
	PartFlags      = "Part of the workload"
	PromptFlags    = "Prompts"
	CachesFlags    = "Caches and metrics of the servers"
	JudgementFlags = "Judgement"
	ResultsFlags   = "Results"
	SimulatedFlags = "Simulated engine"
	HardwareFlags  = "Hardware that was not measured"
	StartedFlags   = "Started engine"
	DeployedFlags  = "Description of the servers"
	VLLMFlags      = "JSON of vllm bench serve"
	RunningFlags   = "While it runs"
	ShardFlags     = "Several machines"
	PrivacyFlags   = "Privacy"
	GeneralFlags   = "General"
)

// Annotations of a flag that hold its section.
const (
	titleOf    = "reprise_section"
	everydayIn = "reprise_everyday"
)

func (s Section) mark(name string) {
	flag := s.fl.Lookup(name)
	flag.Annotations = map[string][]string{titleOf: {s.title}}
	flag.Usage = cmp.Or(flag.Usage, settingRows[name].help)
	if isSettingOf(s.fl.Name(), name) {
		flag.Annotations[cli.Setting], flag.Hidden = nil, true
	} else if s.everyday {
		flag.Annotations[everydayIn] = nil
	}
}

// placeholder is what help and errors call the value of a flag: what stands between
// backquotes in its usage, or its type, in capitals. A switch has none.
func placeholder(flag *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(flag)
	switch kind := flag.Value.Type(); {
	case kind == "bool":
		return ""
	case strings.Contains(flag.Usage, "`") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz -") == "":
		return strings.ToUpper(name)
	case strings.Contains(flag.Usage, "`"):
		return name
	case strings.HasPrefix(kind, "string"):
		return "TEXT"
	default:
		return strings.ToUpper(kind)
	}
}

// StringVar declares a flag with text.
func (s Section) StringVar(to *string, name, def, usage string) {
	s.StringVarP(to, name, "", def, usage)
}

// StringVarP is StringVar with a letter.
func (s Section) StringVarP(to *string, name, letter, def, usage string) {
	s.fl.StringVarP(to, name, letter, def, usage)
	s.mark(name)
}

// OutputVar declares -o, which names a file to write, as [Section.FileVar] does.
func (s Section) OutputVar(to *string, usage string) {
	s.fl.StringVarP(to, "output", "o", "", usage)
	s.written("output")
}

// ParquetVar is [Section.OutputVar] for a file that is always Parquet.
func (s Section) ParquetVar(to *string, usage string) {
	s.OutputVar(to, usage)
	s.fl.Lookup("output").Annotations[cli.Written] = []string{cli.Parquet}
}

// FileVar declares a flag that names a file to write, and --overwrite, without which
// [cli.CheckOutputs] refuses one that exists.
func (s Section) FileVar(to *string, name, usage string) {
	s.fl.StringVar(to, name, "", usage)
	s.written(name)
}

// written marks a flag that names what is written.
func (s Section) written(name string) {
	s.mark(name)
	s.fl.Lookup(name).Annotations[cli.Written] = nil
	if s.fl.Lookup("overwrite") == nil {
		Section{s.fl, ResultsFlags, false}.Bool("overwrite", false, "replace files that exist")
	}
}

// StringArrayVar declares a flag that may be repeated.
func (s Section) StringArrayVar(to *[]string, name string, def []string, usage string) {
	s.fl.StringArrayVar(to, name, def, usage)
	s.mark(name)
}

// StringSliceVar declares a flag with words between commas.
func (s Section) StringSliceVar(to *[]string, name string, def []string, usage string) {
	s.fl.StringSliceVar(to, name, def, usage)
	s.mark(name)
}

// BoolVar declares a switch.
func (s Section) BoolVar(to *bool, name string, def bool, usage string) {
	s.fl.BoolVar(to, name, def, usage)
	s.mark(name)
}

// Promote makes flags of the rest everyday ones, for a command that they matter to.
func Promote(fl *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fl.Lookup(name).Annotations[everydayIn] = nil
	}
}

// Demote leaves flags to --help-all, of a command that others matter more to: these, or without names all that
// there are.
func Demote(fl *pflag.FlagSet, names ...string) {
	fl.VisitAll(func(flag *pflag.Flag) {
		if len(names) == 0 || slices.Contains(names, flag.Name) {
			delete(flag.Annotations, everydayIn)
		}
	})
}

// Bool declares a switch that is asked for by its name.
func (s Section) Bool(name string, def bool, usage string) {
	s.fl.Bool(name, def, usage)
	s.mark(name)
}

// Var declares a flag with a value of its own.
func (s Section) Var(v pflag.Value, name, usage string) {
	s.fl.Var(v, name, usage)
	s.mark(name)
}

// In tells whether a flag or a setting stands in the section of a title.
func In(f *pflag.Flag, title string) bool {
	of, _ := sectionOf(f)
	return of == title
}

// Measured tells whether a flag or a setting says what is measured: a server and how it is asked, or a simulated
// engine.
func Measured(f *pflag.Flag) bool {
	title, _ := sectionOf(f)
	return f.Name == "note" || f.Name != "seed" &&
		slices.Contains([]string{PromptFlags, EndpointFlags, CachesFlags, RunningFlags, SimulatedFlags}, title)
}

// Borrow declares some of the flags and settings that register declares, for a command that needs no others.
func Borrow(fl *pflag.FlagSet, register func(*cobra.Command), names ...string) {
	of := cobra.Command{Use: fl.Name()}
	register(&of)
	for _, name := range names {
		fl.AddFlag(of.Flags().Lookup(name))
	}
}
