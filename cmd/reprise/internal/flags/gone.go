package flags

import (
	"fmt"

	"github.com/spf13/cobra"
)

// A departure is a command or a flag that there was, and what takes its place.
type departure struct {
	command string // "" is every command that had the flag
	flag    string // without dashes; "" is the command itself
	instead string // what to do now: the end of a sentence
}

// departures are kept for one release, so that a script that names one of them says what to
// change. docs/migration.md has the same table, which a test holds it to.
var departures = []departure{
	{"history", "", "reprise export RUNS... --to table writes the runs for tools that find changes; reprise bench " +
		"--baseline and reprise compare --gate judge one"},
	{"evidence", "", "reprise check, sweep, replay and report measure a server; docs/engines.md has the commands"},
	{"pack", "", "results say the digest of their workload, its seed and the contract; compare the offers' results " +
		"with reprise report"},
	{"verify", "", "reprise report --contract judges results again"},
	{"replay", "resume", "a broken replay is begun again; its journal, read by reprise report, has the measurements " +
		"until then"},
	{"man", "", "reprise COMMAND --help-all has every flag, and docs/commands.md every command"},
	{"report", "push", "hand the output of reprise report RESULTS --format prometheus to curl -T - GATEWAY/metrics/job/reprise"},
	{"fidelity", "decisions",
		"reprise sweep --preset finds the capacity of an engine for the trace and for the workload, in virtual time"},
	{"job", "plan", "docs/scale.md says what runs out on a machine; a replay whose requests leave late says so, and " +
		"--shard shares it among machines"},
	{"check", "self", "reprise replay against reprise serve shows what this machine sends: the report has the send " +
		"lag and the client's CPU"},
	{"", "plots", "a page of --html has every plot, which a browser zooms, saves and prints; export --to table has " +
		"the rows for other drawings"},
	{"", "images", "text stands for image tokens, as the run says; vllm bench serve --dataset-name random-mm " +
		"sends images"},
	{"", "map-file", "a file of a format has the mapping and more: --format mine.yaml; import --inspect LOG -o " +
		"mine.yaml writes one"},
	{"", "global-blocks", "what requests share is a template, told by the sessions that have it: leave the flag out"},
	{"audit", "game", "REPRISE_TEST_DP=1 go test ./synth/release -run Game plays the membership game with the code " +
		"that makes releases"},
	{"", "steady-share", "MSER-5 finds the steady state: leave the flag out, or give --set no-steady to do without"},
	{"", "load-weight", "the router prefix follows the prefix alone, and prefix-weighted the load too, as " +
		"--load-weight 1 did"},
	{"serve", "itl", "--costs step=20ms is the time between two tokens"},
	{"serve", "prefill-base", "--costs request=5ms is the time before a request enters the engine"},
	{"serve", "prefill-rate",
		"--costs prefill-token=2.5us is the time of a token of a prompt: 400,000 tokens a second"},
	{"serve", "parallel-prefill",
		"with --costs step=20ms a prompt of --max-num-batched-tokens or less takes one step, beside others too"},
	{"serve", "cache-tokens", "--kv-tokens is the KV memory of the engine, and its prefix cache"},
	{"", "profile-server", "curl -X POST SERVER/start_profile and /stop_profile, before and after a replay, run the " +
		"profiler of vLLM or SGLang"},
	{"capacity", "preset", "reprise sweep WORKLOAD --preset NAME -o DIR, then capacity DIR"},
	{"capacity", "rates", "reprise sweep WORKLOAD --rates LIST -o DIR, then capacity DIR"},
	{"bench", "force", "delete the directory, or choose another one with -o"},
	{"compare", "aa-rounds", "compare a server with itself: give its address as --url-a and --url-b"},
	{"compare", "aa", "compare a server with itself: name its results as --a and --b"},
	{"bench", "accuracy", "a grader such as lm-evaluation-harness asks the server questions; bench measures its speed"},
}

// departed is the error of a command line that names what is gone, or nil. A flag of a command
// that is gone is never asked for.
func departed(command, flag string) error {
	for _, d := range departures {
		switch {
		case d.flag != flag || d.command != command && (d.command != "" || flag == ""):
		case flag == "":
			return fmt.Errorf("%s is gone: %s", command, d.instead)
		default:
			return fmt.Errorf("--%s is gone: %s", flag, d.instead)
		}
	}
	return nil
}

// commandPath is a command's name below the program's.
func commandPath(cmd *cobra.Command) string {
	if cmd.HasParent() && cmd.Parent().HasParent() {
		return commandPath(cmd.Parent()) + " " + cmd.Name()
	}
	return cmd.Name()
}
