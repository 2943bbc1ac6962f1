package main

import (
	"cmp"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/bench"
	"reprise/replay/result"
)

// presetPrefix begins the address of an engine in virtual time.
const presetPrefix = "preset:"

// A modelValue is --model of bench: NAME=URL is a column, anything else the model
// that the endpoint is asked for.
type modelValue struct {
	pflag.Value
	columns *[]string
}

var columnAddress = regexp.MustCompile(`^[^=]+=(` + presetPrefix + `|https?://|unix:)`)

// Set implements [pflag.Value].
func (m *modelValue) Set(s string) error {
	if columnAddress.MatchString(s) {
		*m.columns = append(*m.columns, s)
		return nil
	}
	return m.Value.Set(s)
}

// columns are what the suite is run against.
func (f *benchFlags) columns(cmd *cobra.Command) ([]bench.Column, error) {
	settings, err := f.serve.Settings(cmd)
	given := cmd.Flags().Changed
	switch {
	case err != nil:
		return nil, err
	case len(settings) > 0 && len(f.models) > 0:
		return nil, cli.Usagef("--serve-cmd starts the server: no --model NAME=… beside it")
	case len(f.models) > 0 && (given("url") || given("preset") || given("costs")):
		return nil, cli.Usagef("--model NAME=… names the server: no --url, --preset or --costs beside it")
	}
	var out []bench.Column
	add := func(c bench.Column, err error) error {
		out = append(out, c)
		return err
	}
	for _, s := range settings {
		c, err := f.columnFlags(cmd)
		if err != nil {
			return nil, err
		}
		name := directoryName(cmp.Or(s.Name, f.trial.Live.Target.Model, "engine"))
		served, err := runs.Started(c.cmd, &f.serve, s, c.trial.Live, filepath.Join(f.out, name, "engine.log"))
		if err != nil {
			return nil, err
		}
		about := result.Redact(s.Command.String())
		out = append(out, bench.Column{Name: name,
			About: strings.TrimSpace(about + " " + result.Redact(bench.QuoteWords(c.words()))), Target: served,
			Close: served.Close})
	}
	for _, m := range f.models {
		name, address, _ := strings.Cut(m, "=")
		if err := add(f.column(cmd, name, address)); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		name := cmp.Or(f.trial.Simulated.Engine.Preset, f.trial.Live.Target.Model, "endpoint")
		err = add(f.column(cmd, directoryName(name), ""))
	}
	return out, err
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// directoryName makes a name fit to be that of a directory.
func directoryName(s string) string {
	s = strings.TrimLeft(notInName.ReplaceAllString(s, "-"), "._-")
	return cmp.Or(s[:min(len(s), 64)], "endpoint")
}

// A columnFlags is a command line of its own for a column: the flags of cmd about
// targets, with others beside them.
type columnFlags struct {
	trial runs.Trials
	cmd   *cobra.Command
}

func (f *benchFlags) columnFlags(cmd *cobra.Command, more ...[2]string) (*columnFlags, error) {
	c := &columnFlags{cmd: &cobra.Command{Use: cmd.Use}}
	c.cmd.SetErr(cmd.ErrOrStderr())
	c.cmd.SetContext(cmd.Context())
	c.trial.Register(c.cmd)
	fl := c.cmd.Flags()
	c.trial.MeasureServers(fl)
	c.trial.Live.Deployment.Register(c.cmd)
	var err error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if fl.Lookup(flag.Name) == nil || flag.Name == "model" || flag.Name == "set" {
			return
		}
		for _, v := range cli.FlagValues(flag) {
			if err == nil {
				err = fl.Set(flag.Name, v)
			}
		}
	})
	if m := f.trial.Live.Target.Model; m != "" {
		more = append(more, [2]string{"model", m})
	}
	for _, flag := range more {
		if err == nil {
			err = fl.Set(flag[0], flag[1])
		}
	}
	if err != nil {
		err = cli.Usagef("%v", err)
	}
	return c, err
}

// column is an endpoint by its URL, or an engine in virtual time by its preset; an
// empty address is what the flags name.
func (f *benchFlags) column(cmd *cobra.Command, name, address string) (bench.Column, error) {
	var more [][2]string
	preset, simulated := strings.CutPrefix(address, presetPrefix)
	switch {
	case simulated:
		for i, part := range strings.Split(preset, ",") {
			flag, value, ok := strings.Cut(part, "=")
			if i == 0 {
				flag, value, ok = "preset", part, true
			}
			if !ok {
				value = "true"
			}
			more = append(more, [2]string{flag, value})
		}
	case address != "":
		more = append(more, [2]string{"url", address})
	}
	c, err := f.columnFlags(cmd, more...)
	if err != nil {
		return bench.Column{}, err
	}
	target, err := c.trial.Target(c.cmd)
	out := bench.Column{Name: name, About: result.Redact(bench.QuoteWords(c.words())), Target: target}
	_, out.Empty = target.(runs.SimulatedTarget)
	if out.Empty {
		if d, derr := c.trial.Live.Deployment.Serving(); err == nil && (d != nil || derr != nil) {
			err = cmp.Or(derr, cli.Usagef(
				"hardware, engine and the like say what serves, and %s is a model of that", name))
		}
	}
	return out, err
}

// words are the flags that say which target it is, in the order of the alphabet.
func (c *columnFlags) words() []string {
	var out []string
	c.cmd.Flags().Visit(func(flag *pflag.Flag) {
		for _, v := range cli.FlagValues(flag) {
			switch {
			case flag.Name == "quiet":
			case flag.Name == "url":
				if u, err := url.Parse(v); err == nil && u.User != nil {
					u.User = nil // a password may be in it
					v = u.String()
				}
				out = append(out, "--url", v)
			case flag.Value.Type() == "bool":
				out = append(out, "--"+flag.Name+"="+v)
			default:
				out = append(out, "--"+flag.Name, v)
			}
		}
	})
	return out
}
