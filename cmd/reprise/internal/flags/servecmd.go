package flags

import (
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/bench"
)

// ServeCmd says how an engine is started for what a command measures, and which
// one setting of it varies.
type ServeCmd struct {
	command string
	set     []string
	vary    []string
	Fresh   bool
	Ready   time.Duration
	Grace   time.Duration
}

// Register adds the flags.
func (f *ServeCmd) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	everyday, rest := Sections(fl, StartedFlags)
	everyday.StringVar(&f.command, "serve-cmd", "",
		"`command` that starts the engine, such as 'vllm serve M --port {port} --max-num-seqs {x}'; no shell. {port} "+
			"is a free port; --set and --vary fill in the rest")
	general, _ := Sections(fl, GeneralFlags)
	general.StringArrayVar(&f.set, "set", nil, setUsage+"; or of a placeholder in --serve-cmd")
	everyday.StringArrayVar(&f.vary, "vary", nil,
		"placeholder in --serve-cmd that varies, as `NAME=A,B,…`; an engine is started for each value in turn")
	rest.BoolVar(&f.Fresh, "serve-fresh", false, "")
	rest.DurationVar(&f.Ready, "ready-timeout", bench.DefaultReady, "")
	rest.DurationVar(&f.Grace, "stop-timeout", bench.DefaultGrace, "")
}

// Given tells whether an engine is to be started.
func (f *ServeCmd) Given() bool { return f.command != "" }

// A serveSetting is one value of what varies, or all that there is when nothing does.
type ServeSetting struct {
	Name    string // such as x=64; empty when nothing varies
	Command bench.ServeCommand
}

// Settings are the commands to start, one for each value of --vary. They are read
// before anything is started.
func (f *ServeCmd) Settings(cmd *cobra.Command) ([]ServeSetting, error) {
	if !f.Given() {
		return nil, Refuse(cmd, "needs --serve-cmd", "vary", "serve-fresh", "ready-timeout", "stop-timeout")
	}
	if name := SimulatedFlag(cmd); name != "" {
		return nil, cli.Usagef("--serve-cmd starts the engine that is measured, and %s is of a simulated one: give "+
			"one of them, or put the setting into the command of --serve-cmd", name)
	}
	if f.Ready <= 0 || f.Grace < 0 {
		return nil, cli.Usagef("ready-timeout must be above zero, and stop-timeout not below")
	}
	c, err := bench.ParseServeCommand(f.command)
	if err != nil {
		return nil, cli.Usagef("--serve-cmd: %v", err)
	}
	if !c.HasPort() && !cmd.Flags().Changed("url") {
		return nil, cli.Usagef("--serve-cmd has no {port}: put it where the engine's port is set, or give the " +
			"address with --url")
	}
	fixed, err := pairs("set", f.set)
	if err != nil {
		return nil, err
	}
	name, values, err := f.varied()
	if err != nil {
		return nil, err
	}
	if _, twice := fixed[name]; twice {
		return nil, cli.Usagef("--set and --vary both give %s a value", name)
	}
	var out []ServeSetting
	for _, v := range values {
		all, setting := maps.Clone(fixed), ""
		if name != "" {
			all[name], setting = v, name+"="+v
		}
		filled, err := c.Fill(all)
		if err != nil {
			return nil, cli.Usagef("--serve-cmd: %v; --set NAME=VALUE gives one", err)
		}
		out = append(out, ServeSetting{setting, filled})
	}
	return out, nil
}

// varied reads --vary. Without it there is one value of no name.
func (f *ServeCmd) varied() (name string, values []string, err error) {
	switch len(f.vary) {
	case 0:
		return "", []string{""}, nil
	case 1:
	default:
		return "", nil, cli.Usagef(
			"--vary takes one setting, so that a difference has one cause: fix the others with --set")
	}
	name, list, ok := strings.Cut(f.vary[0], "=")
	values = strings.Split(list, ",")
	seen := map[string]bool{}
	for _, v := range values {
		switch {
		case !ok || name == "" || v == "" || len(values) < 2:
			return "", nil, cli.Usagef("--vary: want NAME=A,B with two values or more")
		case strings.Contains(v, "=") && !strings.HasPrefix(v, "-"):
			return "", nil, cli.Usagef("--vary takes one setting: fix the others with --set")
		case seen[v]:
			return "", nil, cli.Usagef("--vary: %s is given twice", v)
		}
		seen[v] = true
	}
	return name, values, nil
}
