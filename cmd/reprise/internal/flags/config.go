package flags

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace/strictyaml"
)

// variablePrefix begins the variables that set flags and settings; those of tests set none.
const (
	variablePrefix = "REPRISE_"
	testPrefix     = "REPRISE_TEST_"
)

// Annotations of a flag that a variable or a file has set.
const setBy = "reprise_set_by"

// ErrPrinted is the error of a command that has printed its configuration, as
// --print-config asks, and does nothing else.
var ErrPrinted = errors.New("the configuration was printed")

// Config gives a tree of commands --config, --print-config and, where requests go to an
// endpoint, --target.
func Config(root *cobra.Command) {
	for list := root.Commands(); len(list) > 0; list = append(list[1:], list[0].Commands()...) {
		cmd := list[0]
		switch cmd.Name() {
		case "version", "completion", "help":
			continue
		}
		if !cmd.Runnable() || cmd.Parent().Name() == "completion" {
			continue
		}
		general, rest := Sections(cmd.Flags(), GeneralFlags)
		if len(settingsOf(cmd.Flags())) > 0 && cmd.Flags().Lookup("set") == nil {
			general.StringArrayVar(new([]string), "set", nil, setUsage)
		}
		general.StringVar(new(string), "config", "",
			"YAML run `file`: flags and settings as keys. REPRISE_* variables override it, and the command line "+
				"overrides both")
		rest.Bool("print-config", false, "print all that is set as a run file, and exit")
		if cmd.Flags().Lookup("url") != nil {
			endpoint, _ := Sections(cmd.Flags(), EndpointFlags)
			endpoint.StringVar(new(string), "target", "",
				"YAML `file` that describes the endpoint; its keys are url, model, api and other flags of this section")
		}
	}
}

// Configure sets what was not typed: from variables, then from the run file, then from the target's file; and
// then what --set says. environ is as of [os.Environ].
func Configure(cmd *cobra.Command, environ []string) error {
	fl := cmd.Flags()
	if fl.Lookup("config") == nil && fl.Lookup("set") == nil {
		return nil
	}
	c := configuration{cmd: cmd, given: map[string]bool{}}
	var err error
	fl.Visit(func(f *pflag.Flag) {
		if c.given[f.Name] = f.Name != "set"; cli.IsSetting(f) && err == nil {
			err = asSetting(f)
		}
	})
	for _, s := range slices.Concat(spellings, levelSpellings) {
		if c.given[s.name] {
			c.given[s.ours] = true
		}
	}
	if set := fl.Lookup("set"); err == nil && set != nil {
		err = c.claim(cli.FlagValues(set), "")
	}
	if err != nil {
		return err
	}
	if err := c.variables(environ); err != nil {
		return err
	}
	if f := fl.Lookup("config"); f != nil && f.Value.String() != "" {
		if err := c.file(f.Value.String(), "a run file", func(*pflag.Flag) bool { return true }); err != nil {
			return err
		}
	}
	if f := fl.Lookup("target"); f != nil && f.Value.String() != "" {
		if err := c.file(f.Value.String(), "a target", describesTarget); err != nil {
			return err
		}
	}
	if fl.Lookup("set") != nil {
		err = c.settle()
	}
	if err != nil {
		return err
	}
	if cli.On(cmd, "print-config") {
		return cmp.Or(printConfig(cmd.OutOrStdout(), fl), ErrPrinted)
	}
	return nil
}

// SetByVariable tells whether a variable has set a flag: such a flag is for all commands
// of a shell, and one that has no use for it leaves it be.
func SetByVariable(f *pflag.Flag) bool {
	by := f.Annotations[setBy]
	return len(by) > 0 && strings.HasPrefix(by[0], variablePrefix)
}

// Refuse is the error of the first of these flags and settings that was given, and not just by a variable: why it is
// none of this command line.
func Refuse(cmd *cobra.Command, why string, names ...string) error {
	return RefuseBut(cmd, why, func(f *pflag.Flag) bool { return !slices.Contains(names, f.Name) })
}

// RefuseBut refuses every flag and setting that was given but some.
func RefuseBut(cmd *cobra.Command, why string, taken func(*pflag.Flag) bool) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !taken(f) && !SetByVariable(f) && err == nil {
			err = cli.Usagef("%s %s", Spelled(f), why)
		}
	})
	return err
}

type configuration struct {
	cmd   *cobra.Command
	given map[string]bool // flags that have a value which goes before others
	sets  []pair          // of --set
}

// A pair is NAME=VALUE of --set, and where it stands: a file, a variable, or "" for the command line.
type pair struct{ name, value, by string }

// claim keeps pairs of --set until all files are read: one of them may have the --serve-cmd whose placeholders they
// fill. What is read later does not change what they set.
func (c *configuration) claim(texts []string, by string) error {
	before := maps.Clone(c.given)
	for _, text := range texts {
		name, value, valued := strings.Cut(text, "=")
		key := name
		switch f := setting(c.cmd.Flags(), name); {
		case f == nil:
			key = "{" + name + "}"
		case !valued:
			value, valued = f.NoOptDefVal, f.NoOptDefVal != ""
		}
		if !valued {
			return errors.New("--set: want NAME=VALUE")
		}
		if !before[key] {
			c.given[key] = true
			c.sets = append(c.sets, pair{name, value, by})
		}
	}
	return nil
}

// settle sets what --set says of settings, and leaves to --set what fills placeholders of --serve-cmd.
func (c *configuration) settle() error {
	fl := c.cmd.Flags()
	command := ""
	if f := fl.Lookup("serve-cmd"); f != nil {
		command = f.Value.String()
	}
	if set, ok := fl.Lookup("set").Value.(pflag.SliceValue); ok {
		_ = set.Replace(nil)
	}
	for _, p := range c.sets {
		f, err := setting(fl, p.name), error(nil)
		switch {
		case strings.Contains(command, "{"+p.name+"}"), command != "" && f == nil:
			err = fl.Set("set", p.name+"="+p.value)
		case f == nil:
			err = noSetting(fl, p.name)
		default:
			err = c.set(f, []string{p.value}, p.by)
		}
		if err != nil && p.by != "" {
			err = fmt.Errorf("%s: %w", p.by, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settable tells whether a variable or a file may set a flag.
func settable(f *pflag.Flag) bool {
	return Offered(f) && !slices.Contains([]string{"help", "help-all", "version", "print-config"}, f.Name)
}

// describesTarget tells whether a flag belongs to the description of an endpoint.
func describesTarget(f *pflag.Flag) bool {
	title, _ := sectionOf(f)
	return slices.Contains([]string{EndpointFlags, DeployedFlags, CachesFlags}, title) && f.Name != "target" ||
		f.Name == "tokenizer"
}

// variables sets flags from the environment. A variable that no command has a flag for is
// named on stderr.
func (c *configuration) variables(environ []string) error {
	known := map[string]bool{}
	for list := c.cmd.Root().Commands(); len(list) > 0; list = append(list[1:], list[0].Commands()...) {
		list[0].Flags().VisitAll(func(f *pflag.Flag) {
			if settable(f) {
				known[variablePrefix+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))] = true
			}
		})
	}
	names := slices.Sorted(maps.Keys(known))
	slices.Sort(environ)
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, variablePrefix) || strings.HasPrefix(name, testPrefix) {
			continue
		}
		if !known[name] {
			near := closest(name, names)
			if near != "" {
				near = "; did you mean " + near + "?"
			}
			cli.Warnf(c.cmd, "the variable %s sets nothing of any command%s", name, near)
			continue
		}
		f := c.cmd.Flags().Lookup(
			strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, variablePrefix), "_", "-")))
		if f == nil || !settable(f) || c.given[f.Name] || value == "" ||
			f.Name == "url" && c.cmd.Flags().Lookup("url-a") != nil {
			continue
		}
		if err := c.set(f, []string{value}, name); err != nil {
			return fmt.Errorf("the variable %s: %w", name, err)
		}
	}
	return nil
}

// file sets flags from a YAML file with those keys that take agrees to.
func (c *configuration) file(path, what string, take func(*pflag.Flag) bool) error {
	text, err := strictyaml.ReadFile(path, fileBounds(what))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s that was asked for does not exist: %s", what, path)
	case err != nil:
		return err
	}
	return c.read(path, text, what, take)
}

func fileBounds(what string) strictyaml.Bounds {
	return strictyaml.Bounds{What: what, Bytes: 1 << 20}
}

// read sets flags from the text of a file.
func (c *configuration) read(path string, text []byte, what string, take func(*pflag.Flag) bool) error {
	doc, err := strictyaml.Parse(text, fileBounds(what))
	if err == nil {
		err = doc.Each(func(key string, at, value strictyaml.Node) error {
			return c.key(path, what, key, at, value, take)
		})
	}
	return strictyaml.Named(path, err)
}

func (c *configuration) key(path, what, key string, at, value strictyaml.Node, take func(*pflag.Flag) bool) error {
	fl := c.cmd.Flags()
	if key == "url" && what == "a target" && fl.Lookup("url-a") != nil {
		key = "url-a" // a comparison has two sides
	}
	f := fl.Lookup(key)
	switch {
	case key == "url-a":
	case f != nil && take(f) && settable(f) && key != "config":
	default:
		if f == nil && what == "a target" {
			for _, other := range c.cmd.Root().Commands() {
				if f := other.Flags().Lookup(key); f != nil && Offered(f) && describesTarget(f) {
					return nil // a key of other commands, which read the same file
				}
			}
		}
		var names []string
		fl.VisitAll(func(f *pflag.Flag) {
			if settable(f) && take(f) && f.Name != "config" {
				names = append(names, f.Name)
			}
		})
		if near := closest(strings.ReplaceAll(key, "_", "-"), names); near != "" {
			return at.Faultf("unknown key %q: did you mean %s?", key, near)
		}
		return at.Faultf("unknown key %q: the keys of %s for %s are names of its flags and settings, see "+
			"--help-all", key, what, c.cmd.CommandPath())
	}
	var texts []string
	if s, err := value.Text(); err == nil {
		texts = []string{s}
	} else if err := value.List("a value", 10_000, func(n strictyaml.Node) error {
		s, err := n.Text()
		texts = append(texts, s)
		return err
	}); err != nil {
		return err
	}
	if len(texts) > 1 && !repeats(f) {
		return value.Faultf("%s takes one value", key)
	}
	if c.given[f.Name] {
		return nil
	}
	if err := c.set(f, texts, path); err != nil {
		return value.Faultf("%s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "--"), "set "))
	}
	return nil
}

// repeats tells whether a flag takes several values.
func repeats(f *pflag.Flag) bool {
	_, list := f.Value.(pflag.SliceValue)
	return list || f.Value.Type() == "limits" || f.Value.Type() == "numbers"
}

func (c *configuration) set(f *pflag.Flag, texts []string, by string) error {
	if f.Name == "set" {
		return c.claim(texts, by)
	}
	for _, s := range texts {
		if err := c.cmd.Flags().Set(f.Name, s); err != nil {
			return mistake(c.cmd.Flags(), err)
		}
	}
	f.Annotations[setBy], c.given[f.Name] = []string{by}, true
	return nil
}

// printConfig writes what was set as a run file, and where it comes from. What looks like
// a secret is not in it.
func printConfig(w io.Writer, fl *pflag.FlagSet) (err error) {
	fl.VisitAll(func(f *pflag.Flag) {
		if err != nil || !f.Changed || !settable(f) || f.Name == "config" || f.Name == "target" ||
			len(cli.FlagValues(f)) == 0 {
			return
		}
		by := Spelled(f)
		if from := f.Annotations[setBy]; len(from) > 0 {
			by = cmp.Or(from[0], by)
		}
		var value any = cli.FlagValues(f)
		if !repeats(f) {
			value = f.Value.String()
		}
		var text []byte
		switch v := value.(type) {
		case string:
			if v = printable(f.Name, v); slices.Contains([]string{"bool", "number", "share", "factor", "duration"},
				f.Value.Type()) {
				text = []byte(v)
			} else {
				text, err = yaml.Marshal(v)
			}
		case []string:
			for i := range v {
				v[i] = printable(f.Name, v[i])
			}
			text, err = yaml.MarshalWithOptions(v, yaml.Flow(true))
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%s: %s  # %s\n", f.Name, strings.TrimSpace(string(text)), by)
		}
	})
	return err
}

// printable is the value of a flag without what may be a secret.
func printable(flag, value string) string {
	if name, _, ok := strings.Cut(value, "="); ok && flag == "header" {
		return name + "=" + result.Redacted
	}
	if flag == "extra-body" {
		return result.Redacted
	}
	return result.Redact(value)
}
