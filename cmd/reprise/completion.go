package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/anonymize/publish"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/sets"
	"reprise/datasets"
	"reprise/datasets/export"
	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/client"
	"reprise/replay/compare"
	"reprise/replay/engine"
	"reprise/replay/figure"
	"reprise/replay/hardware"
	"reprise/replay/peer"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/scenario"
	"reprise/trace"
	"reprise/trace/fleet"
	"reprise/trace/profile"
	"reprise/trace/token"
)

// completedValues are the values of flags that a shell completes, by the name of the
// flag, or by those of the command and the flag. One that ends in : or = goes on. A
// command and no flag are its arguments: names, which leave files to the shell where none
// begins as typed, or endings of files.
func completedValues() map[string][]string {
	formats := []string{}
	for _, f := range datasets.Formats() {
		formats = append(formats, f.Name)
	}
	outputs := []string{tableFormat, cli.ToHub}
	for _, f := range export.Formats() {
		outputs = append(outputs, f.Name)
	}
	quirks := []string{}
	for _, q := range engine.Quirks() {
		quirks = append(quirks, q.Name)
	}
	routers := append(fleet.Routers(), "all")
	processes := []string{"poisson:", "constant:", "gamma:", "weibull:", "burst", "ramp:", "step:", "diurnal:",
		"spikes:", "onoff:"}
	parquet := []string{".parquet"}
	var gpus []string
	for _, g := range hardware.GPUs() {
		gpus = append(gpus, g.Name)
	}
	costs := []string{"request=", "step=", "kv-token=", "prefill-token=", "decode-seq="}
	tiers := []string{anonymize.Partner, anonymize.Public}
	return map[string][]string{
		"import format": formats, "audit format": formats, "report format": formatNames(), "bench format": {formatText,
			formatMarkdown, formatJSON},
		"datasets ": sets.Names(), "fetch ": sets.Names(), "license": publish.Licenses(),
		"export to": outputs, "preset": flags.PresetNames(), "preset-a": flags.PresetNames(),
		"preset-b": flags.PresetNames(),
		"api": {result.APICompletions, result.APIChat, result.APIResponses, result.APIMessages,
			result.APIEmbeddings, result.APIAuto},
		"balance": {client.RoundRobin, client.BySession}, "cache": result.Caches(),
		"connections": {client.Auto, client.PerRequest, client.Pooled, client.Pooled + ":", "per-session"},
		"instants":    {report.InstantsRead, report.InstantsKernel}, "prime": {"lru", "none"},
		"live": {"auto", "on", "off"}, "recycle": flags.Recycling(), "waits": flags.Waiting(),
		"scenario":          scenario.Names(),
		"simulate hardware": gpus, "predict hardware": gpus, "dtype": hardware.DTypes(),
		"kv-cache-dtype": {"auto", "bf16", "fp8"}, "router": routers, "batching": {"continuous", "static"},
		"imitate": engine.Imitations(), "quirks": quirks,
		"definitions": append([]string{flags.OwnDefinitions}, peer.Presets()...), "primary": compare.PrimaryMetrics(),
		"explain": figure.Offered(report.Summarised), "abort-on": replay.AbortMetrics(), "by": report.ColumnNames(),
		"tier": tiers, "import tier": append([]string{anonymize.Internal, anonymize.Raw}, tiers...), "fit tier": tiers,
		"unit": {"user", "session", "request"}, "time-unit": {"s", "ms", "us", "ns"}, "rows": {"full", "delta"},
		"cached-in-input": {"yes", "no"}, "decimal": {"point", "comma"}, "lengths": {anonymize.LengthsUsage,
			anonymize.LengthsText}, "text": {"stable", trace.TextWords},
		"tokenizer": token.Names(), "template": token.TemplateNames(), "model-shape": profile.ModelShapes(),
		"show": bench.Suites(),
		"rate": processes, "arrivals": processes, "process": {"poisson", "constant", "gamma:cv=", "weibull:cv="},
		"load":   append([]string{"recorded", "sequential", "burst", "concurrency:"}, processes...),
		"scrape": {"auto", "none", "http://", "https://", "unix://"}, "retry": {"0", "1", "2", "3"},
		"percentile-metrics": {"ttft", "tpot", "itl", "e2el"}, "bench ": bench.Suites(), "synth ": datasets.Workloads(),
		"report ": {".parquet", ".journal"}, "capacity ": {".json", ".parquet"},
		"profile ": parquet, "slice ": parquet, "anonymize ": parquet, "fidelity ": parquet, "export ": parquet,
		"simulate ": parquet, "replay ": parquet, "compare ": parquet, "sweep ": parquet, "calibrate ": parquet,
		"validate ": {".yaml", ".parquet"}, "costs": costs, "costs-a": costs, "costs-b": costs,
	}
}

// offer completes with what begins as the word that is typed, or, of a list, as its part
// behind the last comma.
func offer(words []string, list bool, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		before := ""
		if list {
			before = typed[:strings.LastIndexByte(typed, ',')+1]
		}
		for _, word := range words {
			if strings.HasPrefix(before+word, typed) {
				found = append(found, before+word)
			}
		}
		return found, directive
	}
}

var limitKey = regexp.MustCompile(`\n  ([a-z-]+=)`)

// completeIn has the shell complete the arguments and the values of all flags of a
// command, and of those below it. Flags with numbers complete nothing: by itself a shell
// would offer files.
func completeIn(cmd *cobra.Command, values map[string][]string) {
	if names := values[cmd.Name()+" "]; len(names) > 0 && names[0][0] == '.' {
		endings := strings.Split(strings.ReplaceAll(strings.Join(names, " "), ".", ""), " ") // as shells want them
		cmd.ValidArgsFunction = cobra.FixedCompletions(endings, cobra.ShellCompDirectiveFilterFileExt)
	} else if names != nil {
		cmd.ValidArgsFunction = offer(names, false, cobra.ShellCompDirectiveDefault)
	}
	var set []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		offered, ok := values[cmd.Name()+" "+f.Name]
		if !ok {
			offered, ok = values[f.Name]
		}
		if cli.IsSetting(f) {
			for _, value := range append(offered[:len(offered):len(offered)], "") {
				set = append(set, f.Name+"="+value)
			}
			return
		}
		what, _ := pflag.UnquoteUsage(f)
		directive := cobra.ShellCompDirectiveDefault // files
		switch text := strings.HasPrefix(f.Value.Type(), "string"); {
		case ok && slices.ContainsFunc(offered, func(v string) bool {
			return strings.ContainsAny(v[len(v)-1:], ":=/")
		}):
			directive = cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		case ok && (f.Name == "tokenizer" || f.Name == "template" || strings.HasPrefix(f.Name, "preset")):
			// or the path of a file
		case ok:
			directive = cobra.ShellCompDirectiveNoFileComp
		case f.Name == "trust":
			for _, m := range limitKey.FindAllStringSubmatch(f.Usage, -1) {
				offered = append(offered, m[1])
			}
			directive = cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		case f.Name == "set":
			return // below
		case what == "directory":
			directive = cobra.ShellCompDirectiveFilterDirs
		case f.Name == "config" || f.Name == "target" || f.Name == "contract":
			_ = cmd.MarkFlagFilename(f.Name, "yaml", "yml")
			return
		case !text:
			directive = cobra.ShellCompDirectiveNoFileComp
		}
		list := strings.HasPrefix(f.Name, "costs") ||
			slices.Contains([]string{"trust", "quirks", "by", "abort-on", "percentile-metrics"}, f.Name)
		// it fails for flags that there are not
		_ = cmd.RegisterFlagCompletionFunc(f.Name, offer(offered, list, directive))
	})
	_ = cmd.RegisterFlagCompletionFunc("set", offer(set, false,
		cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	for _, sub := range cmd.Commands() {
		completeIn(sub, values)
	}
}
