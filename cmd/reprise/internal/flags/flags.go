// Package flags holds the groups of flags that several commands of reprise share, one
// file a group, and the spellings of other tools that they are translated from.
//
// A group is a struct: Register adds its flags to a command, Check refuses what cannot
// be meant, and its other methods turn it into options of the libraries.
//
// # Files
//
//   - flags.go: what a group of flags is
//   - section.go: named groups of flags in the help of a command
//   - settings.go, settings.txt: the settings of --set, which are no flags
//   - noise.go: the value of noise
//   - numbers.go: flags with numbers: counts, durations, rates, factors, shares
//   - rate.go: --rate: a rate alone, or an arrival process
//   - help.go: --help in sections, --help-all, completion, missing arguments
//   - config.go: --config, --target, REPRISE_ variables, --print-config
//   - gone.go: commands and flags that are gone, and what takes their place
//   - mistakes.go: unknown flags and values that cannot be read, in words
//   - target.go: to whom requests go, and what they hold: --api, --model, --header, keys,
//     TLS, proxy, timeouts, --retry, sampling, --extra-body, row-extra,
//     class-priority
//   - tls.go: tls-ca and the like, for a target and for the server behind a proxy
//   - wire.go: --connections and the setting realtime
//   - sessions.go: session trees as the unit of load: --sessions, --session-rate, their caps and
//     scales, waits, recycle, trajectory-start
//   - shard.go: the share of a load that several processes send, and when they start: --shard,
//     --start-clock, clock-peer, max-clock-offset
//   - share.go: --shard i/n, or /n with the index that an Indexed Job or a Slurm array sets
//   - scenario.go: the rules of a published benchmark: --scenario, --force
//   - load.go: when requests are due: --speed, --rate, --concurrency, ramp-up,
//     --open-loop, --warmup, cooldown; --abort-on
//   - rampup.go: rates that grow, as vLLM has them, and all requests at once
//   - made.go: requests without a workload: --input-tokens, --shared-prefix, --turns
//   - workload.go: which part of a workload is sent: --start, --end, --sample,
//     --max-requests, --loop, prime
//   - prompts.go: what prompts are made of: --text, --corpus, --tokenizer, --seed,
//     --share-tails
//   - tokenizer.go: finding a tokenizer.json by its digest; whether a server counts as a
//     tokenizer does
//   - learnt.go: the words that a server counts as one token each, remembered for ten minutes
//   - servers.go: measuring the servers, and preparing their caches: --scrape,
//     prometheus, --cache, --note
//   - deployment.go: what serves, in the user's words: --hardware, model-size,
//     quantization, engine
//   - engine.go: simulated engines: --preset, --costs, --kv-tokens, --replicas, --router
//   - presetfile.go: a preset by its name, or by the file that calibrate wrote
//   - hardware.go: engines that were not measured: --model-config, --hardware, roofline:
//   - servecmd.go: starting an engine: --serve-cmd, --vary, ready-timeout
//   - judge.go: how results are judged: --slo, --contract, --definitions, no-steady,
//     prices, GPUs; --html
//   - trust.go: --trust: the limits beyond which a run is not trusted
//   - vllmresult.go: the JSON of vLLM: --save-result, --metadata, --percentile-metrics
//   - spellings.go: flags of vllm bench serve that replay takes too, refuses or
//     translates; several values after one flag; old names of limits (--max-lag)
//   - log.go: how a log is read and what its rows are: --format, --map, --tz, --tokenizer,
//     --template, --block-size; the metadata of imported rows
//   - source.go: --capture-begin and --capture-end; --keep-templates
//   - tier.go: rules of privacy tiers: --tier, --k-share, --epsilon, --ledger
package flags

import "github.com/spf13/cobra"

// QuietUsage is the help for --quiet, which [cli.Notef] and bars of progress obey.
const QuietUsage = "no progress and no notes, but warnings"

// A Group is flags that belong together.
type Group interface {
	// Register adds the flags to a command, and sets them to their defaults.
	Register(cmd *cobra.Command)
	// Check refuses values that mean nothing, alone or with other flags of the group.
	Check() error
}
