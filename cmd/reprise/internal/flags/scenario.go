package flags

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/replay/scenario"
)

// Scenario holds a replay to the rules of a published benchmark.
type Scenario struct {
	name  string
	force bool
	Rules *scenario.Scenario // nil without one
	about *result.Scenario
}

// Register adds the flags.
func (f *Scenario) Register(rest Section) {
	rest.StringVar(&f.name, "scenario", "",
		"hold the run to the rules of a published benchmark and stamp its results: "+strings.Join(scenario.Names(),
			", ")+", or a YAML `file`")
	rest.BoolVar(&f.force, "force", false,
		"run though rules of --scenario are broken; the results name them and are not valid")
}

// Lock fills in the settings of a command that the rules lock, and refuses those that are
// set otherwise, unless --force is given.
func (f *Scenario) Lock(cmd *cobra.Command) error {
	if f.name == "" {
		if f.force {
			return cli.Usagef("--force is for --scenario: it runs though rules are broken")
		}
		return nil
	}
	var err error
	if f.Rules, err = scenario.Find(f.name); err == nil {
		f.about, err = f.Rules.Apply(settings{cmd})
	}
	if err != nil {
		return cli.Usagef("--scenario: %v", err)
	}
	if err := f.refuse(cmd, f.about.Broken); err != nil {
		return err
	}
	if len(f.about.Filled) > 0 {
		cli.Notef(cmd, "scenario %s: sets %s", f.Rules.Version, strings.Join(f.about.Filled, " "))
	}
	return nil
}

// LockWorkload refuses a workload that the rules do not permit, by its digest and that of
// the file that it is of.
func (f *Scenario) LockWorkload(cmd *cobra.Command, digest, source string) error {
	if f.Rules == nil {
		return nil
	}
	f.about.Source = source
	broken := f.Rules.CheckWorkload(digest, source)
	if broken == nil {
		return nil
	}
	f.about.Broken = append(f.about.Broken, *broken)
	return f.refuse(cmd, []result.BrokenRule{*broken})
}

// refuse is the error of broken rules; with --force it says them and goes on.
func (f *Scenario) refuse(cmd *cobra.Command, broken []result.BrokenRule) error {
	var says []string
	for _, b := range broken {
		name := "the " + b.Rule
		if field, ok := strings.CutPrefix(b.Rule, "body."); ok {
			name = "the field " + field
		} else if f := cmd.Flags().Lookup(b.Rule); f != nil {
			name = Spelled(f)
		}
		says = append(says, fmt.Sprintf("%s is %s, and the scenario wants %s", name, b.Given, b.Want))
	}
	if len(says) > 0 && !f.force {
		return cli.Usagef("scenario %s: %s. --force runs all the same, and stamps the results as not valid",
			f.Rules.Version, strings.Join(says, "; "))
	}
	for _, b := range says {
		cli.Warnf(cmd, "scenario %s: broken by --force: %s", f.Rules.Version, b)
	}
	return nil
}

// About is what the results say of the scenario before the run; nil without one.
func (f *Scenario) About() *result.Scenario { return f.about }

// settings are the flags of a command, for a scenario.
type settings struct{ cmd *cobra.Command }

// Lookup implements [scenario.Settings].
func (s settings) Lookup(name string) (value, byItself string, given, ok bool) {
	f := s.cmd.Flags().Lookup(name)
	if f == nil || !settable(f) {
		return "", "", false, false
	}
	return f.Value.String(), f.DefValue, f.Changed, true
}

// Set implements [scenario.Settings].
func (s settings) Set(name, value string) error {
	if err := s.cmd.Flags().Set(name, value); err != nil {
		return mistake(s.cmd.Flags(), err)
	}
	return nil
}
