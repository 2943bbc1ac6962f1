package main

import (
	"cmp"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
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
		return nil, cli.Usagef("--serve-cmd starts what is measured: no --model NAME=… beside it")
	case len(f.models) > 0 && (given("url") || given("preset") || given("costs")):
		return nil, cli.Usagef("--model NAME=… says what is measured: no --url, --preset or --costs beside it")
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
			About: strings.TrimSpace(about + " " + result.Redact(bench.QuoteWords(c.words("")))), Target: served,
			Close: served.Close,
			Command: func(t bench.Trial) string {
				return "# the engine, here at port 8000: " + strings.ReplaceAll(about, "{port}", "8000") + "\n" +
					c.command("replay", t)
			}})
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
	out := bench.Column{Name: name, About: result.Redact(bench.QuoteWords(c.words(""))), Target: target}
	_, out.Empty = target.(runs.SimulatedTarget)
	command := "replay"
	if out.Empty {
		command = "simulate"
		if d, derr := c.trial.Live.Deployment.Serving(); err == nil && (d != nil || derr != nil) {
			err = cmp.Or(derr, cli.Usagef(
				"hardware, engine and the like say what serves, and %s is a model of that", name))
		}
	}
	out.Command = func(t bench.Trial) string { return c.command(command, t) }
	return out, err
}

// words are the flags and settings as they are typed to a command, in the order of the alphabet. Without a command
// all are as flags: what says which target it was, since before there were settings.
func (c *columnFlags) words(command string) []string {
	var out []string
	c.cmd.Flags().Visit(func(flag *pflag.Flag) {
		for _, v := range cli.FlagValues(flag) {
			switch {
			case flag.Name == "quiet":
			case flags.IsSettingOf(command, flag.Name):
				out = append(out, "--set", flag.Name+"="+v)
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

// command is the command line that makes a trial by hand.
func (c *columnFlags) command(name string, t bench.Trial) string {
	words := []string{"reprise", name, t.Workload}
	words = append(words, c.words(name)...)
	add := func(flag, value string, given bool) {
		switch {
		case !given:
		case flags.IsSettingOf(name, flag):
			words = append(words, "--set", flag+"="+value)
		default:
			words = append(words, "--"+flag, value)
		}
	}
	add("rate", t.Load.Rate, t.Load.Rate != "")
	add("concurrency", strconv.Itoa(t.Load.Concurrency), t.Load.Concurrency > 0)
	add("sessions", strconv.Itoa(t.Load.Sessions), t.Load.Sessions > 0)
	add("session-rate", t.Load.SessionRate, t.Load.SessionRate != "")
	if s := t.Session; s != nil {
		for _, flag := range flags.SessionFlags(s.SessionSettings) {
			add(flag[0], flag[1], true)
		}
	}
	add("ramp-up", t.Load.RampUp.String(), t.Load.RampUp > 0)
	add("speed", strconv.FormatFloat(t.Load.Speed, 'g', -1, 64), t.Load.Speed > 0 && t.Load.Speed != 1)
	add("duration", t.Duration.String(), t.Duration > 0)
	add("warmup", t.Warmup, t.Warmup != "")
	add("cooldown", t.Cooldown, t.Cooldown != "")
	add("timeout", t.Timeout.String(), t.Timeout > 0)
	add("seed", t.Seed, t.Seed != "")
	if name == "replay" {
		add("cache", t.Cache, t.Cache != "" && t.Cache != result.CacheSalted)
		add("max-requests", strconv.FormatInt(t.Rows, 10), t.Rows > 0)
	}
	add("output", "by-hand.parquet", true)
	return bench.QuoteWords(slices.DeleteFunc(words, func(w string) bool { return w == "" }))
}
