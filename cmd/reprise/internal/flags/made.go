package flags

import (
	"cmp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/synth/spec"
	"reprise/trace/arrival"
	"reprise/trace/quantity"
)

// Made describes requests on the command line, for a load without a file: lengths, prefixes
// that prompts share, and turns.
type Made struct {
	fl       *pflag.FlagSet
	Requests int64     // how many are made where the command says no number; 0 is [madeRequests]
	input    string    // --input-tokens
	output   string    // --output-tokens, where the command has no flag of that name by itself
	shared   string    // --shared-prefix
	prefixes int       // --prefixes
	turns    string    // --turns
	Of       *Workload // takes --turns where no requests are made; nil in a command without it
}

// madeRequests is the number of requests where no flag gives one. Built-in workloads have as many.
const madeRequests = 1000

// Register adds the flags. It comes after --output-tokens of a command that has one for
// workloads, too.
func (f *Made) Register(cmd *cobra.Command) {
	f.fl = cmd.Flags()
	_, rest := Sections(f.fl, LoadFlags)
	rest.StringVar(&f.input, "input-tokens", "",
		"without WORKLOAD: prompts of so many `tokens`: 550, 550±100, uniform:100-900 or "+
			"lognormal:550,0.4")
	if f.fl.Lookup("output-tokens") == nil {
		rest.StringVar(&f.output, "output-tokens", "", "and with answers of so many `tokens`, written in the same way")
	}
	rest.StringVar(&f.shared, "shared-prefix", "",
		"`tokens` before --input-tokens in each prompt, which prompts have in common")
	rest.IntVar(&f.prefixes, "prefixes", 1, "how many different shared prefixes there are")
	rest.StringVar(&f.turns, "turns", "",
		"`number` of turns of a session; each turn repeats the turns before it and adds --input-tokens. With "+
			"WORKLOAD: send only the first turns of each conversation")
}

// Given tells whether the flags stand for a workload.
func (f *Made) Given() bool { return f.input != "" }

// Name is what reports call the requests, empty without the flags.
func (f *Made) Name() string {
	if !f.Given() {
		return ""
	}
	return f.input + " in, " + f.outputs() + " out"
}

// Wants wants one workload, or none where the flags make one.
func (f *Made) Wants(cmd *cobra.Command, args []string) error {
	if !f.Given() {
		if f.Of != nil && f.turns != "" {
			n, err := quantity.Count(f.turns)
			if err != nil || n == 0 {
				return cli.Usagef("--turns: want how many first turns of each conversation are sent, such as 1")
			}
			f.Of.Turns = n
		}
		for _, name := range []string{"shared-prefix", "prefixes", "turns"} {
			if cmd.Flags().Changed(name) && (name != "turns" || f.Of == nil) {
				return cli.Usagef("--%s is about requests that are made: give their length, --input-tokens 550", name)
			}
		}
		if err := Wants(1, 1, "which workload?")(cmd, args); err != nil {
			return cli.Usagef("%w, or in place of WORKLOAD --input-tokens 550 --output-tokens 150", err)
		}
		return nil
	}
	if len(args) > 0 {
		return cli.Usagef("%s and --input-tokens are two workloads: give one of them", args[0])
	}
	if f.outputs() == "" {
		return cli.Usagef("--input-tokens makes requests, and their answers need a length, too: --output-tokens 150")
	}
	return nil
}

// blockOf is the largest block of at most 16 tokens that a shared prefix is a multiple of, since
// only whole blocks are shared: so 1,000 tokens stay 1,000. It is 0, the default, for a
// distribution, whose draws are rounded.
func blockOf(shared string) int {
	tokens, err := quantity.Count(shared)
	if err != nil {
		return 0
	}
	for block := int64(16); block > 3; block-- {
		if tokens%block == 0 {
			return int(block)
		}
	}
	return 3
}

// outputs is --output-tokens, wherever it is registered.
func (f *Made) outputs() string { return f.fl.Lookup("output-tokens").Value.String() }

// Turns tells whether the requests come in sessions.
func (f *Made) Turns() bool { return f.turns != "" }

// Spec is what the flags describe: so many requests, or for 0 as many as [Made.Requests]. The load replaces
// its arrivals.
func (f *Made) Spec(requests int64) (*spec.Spec, error) {
	s := &spec.Spec{Name: f.Name(), Requests: cmp.Or(requests, f.Requests, madeRequests), Arrivals: "burst"}
	for _, length := range []struct{ flag, text string }{
		{"input-tokens", f.input}, {"output-tokens", f.outputs()}, {"shared-prefix", f.shared}, {"turns", f.turns},
	} {
		if length.text == "" {
			continue
		}
		if _, err := arrival.ParseLength(length.text); err != nil {
			return nil, cli.Usagef("--%s: %v", length.flag, err)
		}
	}

	s.Lengths = spec.Lengths{Own: f.input, Output: f.outputs()}
	if f.shared != "" {
		s.Block = blockOf(f.shared)
		s.Prefix = &spec.Prefix{Groups: []spec.PrefixGroup{{Share: 1, Count: f.prefixes, Depth: f.shared}}}
	}
	if f.turns != "" {
		// Each session is over before the next begins, so that the rows are whole sessions.
		s.Arrivals, s.Answer = "constant:0.001", "1ms"
		s.Sessions = &spec.Sessions{Turns: f.turns, Think: "0s"}
	}
	switch {
	case f.prefixes < 1:
		return nil, cli.Usagef("--prefixes: want a number above 0")
	case f.prefixes > 1 && f.shared == "":
		return nil, cli.Usagef("--prefixes needs --shared-prefix, their length")
	}
	if err := s.Check(); err != nil {
		return nil, cli.Usagef("%w", err)
	}
	return s, nil
}
