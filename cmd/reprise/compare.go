package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/replay/compare"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/objectstore"
	"reprise/trace/quantity"
)

// compareFlags are the flags of compare.
type compareFlags struct {
	a, b       []string // results of recorded rounds
	arms       []string // NAME=FILE
	names      [2]string
	production string
	primary    string
	alpha      float64
	detect     string
	gate       bool
	judge      flags.Judge
	making     roundFlags
	readers    map[string]bool // names of the flags that are not about making rounds
}

func compareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use: "compare WORKLOAD --url-a URL --url-b URL | A.parquet B.parquet | --a FILE … --b FILE … | " +
			"--production TRACE RESULTS",
		Short: "Decide whether one server is slower than another, with statistics",
		Long: `Compare says whether server B differs from server A. It replays a workload against both
in rounds: one run of each, with the same requests at the same times, in alternating order.
Every round has new arrivals and prompts.

The exit code is 4 if a run cannot be trusted, and with --gate 3 if B is significantly
worse.` + flags.ListsBegin + `

The servers are --url-a and --url-b; simulated engines (--preset, --set-b, --costs-b); or one
engine with two settings, started and stopped in turn (--serve-cmd, --vary x=A,B). A stopped
comparison continues in its directory. Recorded results can be
compared by naming them or their directory: --a and --b in the order of the rounds, and --arm
NAME=FILE for more servers. docs/compare.md says how a verdict is reached.`,
		Example: `  reprise compare --url-a http://old:8000 --url-b http://new:8000 --isl 550 --osl 150 --rate 10 -o new
  reprise compare w.parquet --preset l4-qwen2.5-0.5b --costs-b step=5.7ms --rate poisson:20 -o rounds
  reprise compare w.parquet --preset l4-qwen2.5-0.5b --set-b no-prefix-caching --rate poisson:20 -o caching
  reprise compare rounds --name-b new --detect 3% --html compare.html`,
		Args: flags.Wants(0, 2, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.making.spellings.Apply(cmd, new(flags.VLLMResult)); err != nil {
				return err
			}
			c, err := f.compare(cmd, args)
			if err != nil {
				return err
			}
			return f.write(cmd, c)
		},
	}
	fl := cmd.Flags()
	recordedRuns, recordedRunsRest := flags.Sections(fl, "Recorded runs")
	judgement, judgementRest := flags.Sections(fl, flags.JudgementFlags)
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	recordedRuns.StringArrayVar(&f.a, "a", nil, "results of the first server, one `file` a round; repeatable")
	recordedRuns.StringArrayVar(&f.b, "b", nil, "results of the second server, one `file` a round, in the same order")
	recordedRunsRest.StringVar(&f.names[0], "name-a", "",
		"name of the first server in all output; by default A, or its name in the directory")
	recordedRunsRest.StringVar(&f.names[1], "name-b", "", "name of the second server; by default B")
	recordedRunsRest.StringArrayVar(&f.arms, "arm", nil,
		"results of a server, as `NAME=FILE`, instead of --a and --b; repeatable. All are compared with the first name")
	recordedRuns.StringVar(&f.production, "production", "",
		"`trace` whose recorded TTFT and E2E are compared with a replay of it")
	judgement.MetricVar(&f.primary, "primary",
		"`metric` that decides, such as p95_ttft, mean_tpot, error_rate or sessions_per_s. "+
			"Default: the one that varies least in pilot rounds; of recorded runs "+compare.DefaultPrimary,
		compare.ParsePrimary)
	judgementRest.ShareVar(&f.alpha, "alpha", 0.01,
		"significance level: probability of a verdict without a real difference")
	judgement.StringVar(&f.detect, "detect", "",
		"`change` of the primary metric to detect, such as 3%: makes as many rounds as that needs; of recorded runs "+
			"it prints how many would")
	judgement.BoolVar(&f.gate, "gate", false,
		"exit with 3 if B is significantly worse on the primary metric or any latency that users feel")
	f.judge.Defaults()
	results.Bool("json", false, "print the comparison as JSON")
	flags.Details(fl)
	results.FileVar(&f.judge.HTML, "html", "write a self-contained HTML `page`")
	judgement.StringVar(&f.judge.SLO, "slo", "",
		"objectives that a request must meet to count as goodput, such as ttft:200ms,tpot:50ms,e2e:5s")
	f.judge.Trust.Register(cmd)
	f.readers = map[string]bool{}
	fl.VisitAll(func(fl *pflag.Flag) { f.readers[fl.Name] = true })
	f.making.register(cmd)
	return cmd
}

// options are what the flags ask for.
func (f *compareFlags) options() (compare.Options, error) {
	o := compare.Options{Primary: f.primary, Alpha: f.alpha, Gate: f.gate}
	if f.alpha == 0 {
		return o, cli.Usagef("--alpha: want a probability above 0")
	}
	if f.detect != "" {
		var err error
		if o.Detect, err = quantity.Share(f.detect); err != nil || o.Detect == 0 || !strings.HasSuffix(f.detect, "%") {
			return o, cli.Usagef("--detect: want a change in percent, such as 3%%")
		}
	}
	if err := o.Check(); err != nil {
		return o, cli.Exit(cli.Usage, err)
	}
	return o, nil
}

// compared reads what the arguments name, by the kind of comparison that they ask
// for.
func (f *compareFlags) compare(cmd *cobra.Command, args []string) (c compare.Comparison, err error) {
	o, err := f.options()
	if err != nil {
		return c, err
	}
	if _, err := f.judge.Options(); err != nil {
		return c, err
	}
	if err := cli.KeepInputs(append(append(append(args, f.production), f.a...), f.b...),
		f.judge.HTML); err != nil {
		return c, err
	}
	for i, name := range f.names {
		flag := "--name-" + [2]string{"a", "b"}[i]
		switch {
		case name == "":
		case len(f.arms) > 0 || f.production != "":
			return c, cli.Usagef("%s is of the sides A and B: --arm NAME=FILE names its servers itself, and "+
				"--production has a trace and its replay", flag)
		case utf8.RuneCountInString(name) > maxSideName || strings.TrimSpace(name) == "" ||
			strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
			return c, cli.Usagef("%s: want %d printed characters at most", flag, maxSideName)
		}
	}
	isServer := func(arg string) bool { return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://") }
	if i := slices.IndexFunc(args, isServer); i >= 0 {
		return c, cli.Usagef("%s is a server: compare two with reprise compare WORKLOAD --url-a URL --url-b URL -o "+
			"DIRECTORY", result.Redact(args[i]))
	}
	if f.making.given() {
		if f.making.made.Given() == (len(args) > 0) || len(args) > 1 || f.production != "" || len(f.a)+len(f.b)+len(f.arms) > 0 {
			return c, cli.Usagef("rounds are made of one workload: reprise compare WORKLOAD --url-a URL --url-b URL " +
				"-o DIRECTORY")
		}
		return f.live(cmd, cmp.Or(args...), o)
	}
	err = flags.RefuseBut(cmd, "is about making rounds: name the servers, by --url-a and --url-b or --preset-a and "+
		"--preset-b", func(fl *pflag.Flag) bool {
		return f.readers[fl.Name] || slices.Contains([]string{"quiet", "config", "set"}, fl.Name)
	})
	if err != nil {
		return c, err
	}
	if f.production != "" {
		return f.againstProduction(cmd, args, o)
	}
	if experiments, err := experimentsOf(args); err != nil || len(experiments) > 0 {
		if err != nil {
			return c, err
		}
		f.judge.Trust.Keep(experiments...)
		arms, err := bench.Arms(experiments...)
		if err != nil {
			return c, cli.Exit(cli.Usage, err)
		}
		if f.primary == "" && !cmd.Flags().Changed("alpha") { // else it is another comparison than the planned one
			if o.Plan, err = storedPlan(&experiments[0]); err != nil {
				return c, err
			}
		}
		if err := f.nameSides(arms); err != nil {
			return c, err
		}
		if err := f.gated(len(arms[0].Files), len(arms)-1); err != nil {
			return c, err
		}
		return f.rounds(cmd, arms, o)
	}
	arms, err := f.recorded(args)
	if err != nil {
		return c, err
	}
	return f.rounds(cmd, arms, o)
}

// experimentsOf opens the directories of several runs among the arguments; none where these are files.
func experimentsOf(args []string) (out []bench.Experiment, err error) {
	for _, arg := range args {
		if info, err := objectstore.Stat(arg); err != nil || !info.IsDir() || trace.IsPartitioned(arg) {
			continue
		}
		e, err := bench.Open(arg)
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(args) > 1:
			continue // it has the results of one run
		case errors.Is(err, fs.ErrNotExist):
			return nil, cli.Usagef("%s has no %s, so that it does not say which results in it belong together: name "+
				"the results", arg, bench.StateName)
		case err != nil:
			return nil, err
		}
		out = append(out, e)
	}
	if len(out) > 0 && len(out) < len(args) {
		return nil, cli.Usagef("name directories of several runs, or results of single runs: not both")
	}
	return out, nil
}

// gated refuses a gate that could never fail.
func (f *compareFlags) gated(rounds, against int) error {
	if need := compare.LeastRounds(f.alpha, against); f.gate && rounds < need {
		return cli.Usagef("--gate: a verdict at alpha %v needs %d rounds, and there are only %d", f.alpha, need, rounds)
	}
	return nil
}

// write prints the comparison and returns its outcome as the exit code.
func (f *compareFlags) write(cmd *cobra.Command, c compare.Comparison) error {
	err := cli.Finding{Tier: c.Tier, Page: c.Document(), JSON: c, HTML: f.judge.HTML,
		Rest: "All metrics, and how to read them: --details. Page with plots: --html FILE."}.Write(cmd)
	if err != nil {
		return err
	}
	if !c.Trustworthy() {
		return cli.Exit(cli.Untrusted, errors.New(c.Untrusted()))
	}
	for _, v := range c.Versus {
		if f.gate && v.Decision == compare.Worse {
			return cli.Exit(cli.Check, errors.New("gate failed: "+v.Text))
		}
	}
	return nil
}

// recorded finds the arms that the arguments and flags name.
func (f *compareFlags) recorded(args []string) (arms []bench.Arm, err error) {
	ways := 0
	for _, given := range []bool{len(args) > 0, len(f.a)+len(f.b) > 0, len(f.arms) > 0} {
		if given {
			ways++
		}
	}
	isServer := func(name string) bool { return strings.Contains(name, "://") && !objectstore.IsURL(name) }
	switch {
	case slices.ContainsFunc(slices.Concat(f.a, f.b), isServer):
		return nil, cli.Usagef("--a and --b name results: a server goes to --url-a or --url-b")
	case ways > 1:
		return nil, cli.Usagef("name the results in one way: two files, --a and --b, or --arm")
	case len(args) == 2:
		arms = []bench.Arm{{Name: "A", Files: args[:1]}, {Name: "B", Files: args[1:]}}
	case ways == 0:
		return nil, cli.Usagef("which workload, or which results? reprise compare WORKLOAD --url-a URL --url-b URL, " +
			"or reprise compare A.parquet B.parquet")
	case len(args) == 1:
		return nil, cli.Usagef("a comparison needs at least two results; with --production TRACE, one")
	case len(f.arms) > 0:
		for _, given := range f.arms {
			name, file, ok := strings.Cut(given, "=")
			if !ok || name == "" || file == "" {
				return nil, cli.Usagef("--arm: want NAME=FILE")
			}
			i := 0
			for i < len(arms) && arms[i].Name != name {
				i++
			}
			if i == len(arms) {
				arms = append(arms, bench.Arm{Name: name})
			}
			arms[i].Files = append(arms[i].Files, file)
		}
	default:
		arms = []bench.Arm{{Name: "A", Files: f.a}, {Name: "B", Files: f.b}}
	}
	if len(f.arms) == 0 {
		if err := f.nameSides(arms); err != nil {
			return nil, err
		}
	}
	if len(arms) < 2 {
		return nil, cli.Usagef("--arm: name two servers at least")
	}
	for _, arm := range arms {
		if n := len(arms[0].Files); len(arm.Files) != n || n == 0 {
			return nil, cli.Usagef("%s has %d runs and %s has %d: want one of each in every round", arms[0].Name, n,
				arm.Name, len(arm.Files))
		}
	}
	return arms, f.gated(len(arms[0].Files), len(arms)-1)
}

// rounds compares recorded runs.
func (f *compareFlags) rounds(cmd *cobra.Command, arms []bench.Arm,
	o compare.Options) (c compare.Comparison, err error) {
	compared, err := f.summarised(cmd, arms, true)
	if err != nil {
		return c, err
	}
	c, err = compare.Arms(compared, o)
	if err != nil {
		err = cli.Exit(cli.Usage, err)
	}
	return c, err
}

// summarised reads the runs of the arms, and with requests what intervals are resampled from.
func (f *compareFlags) summarised(cmd *cobra.Command, arms []bench.Arm,
	requests bool) (out []compare.Arm, err error) {
	for _, arm := range arms {
		a := compare.Arm{Name: arm.Name, Files: arm.Files}
		if requests {
			a.Clusters = new(compare.Clusters)
		}
		for _, file := range arm.Files {
			s, err := f.summarise(cmd, file, a.Clusters)
			if err != nil {
				return nil, err
			}
			a.Runs = append(a.Runs, s)
		}
		out = append(out, a)
	}
	return out, nil
}

// summarise reads a run, and its requests into the clusters.
func (f *compareFlags) summarise(cmd *cobra.Command, path string, into *compare.Clusters) (report.Summary, error) {
	if err := cmd.Context().Err(); err != nil {
		return report.Summary{}, err
	}
	o, err := f.judge.Options()
	if err != nil {
		return report.Summary{}, err
	}
	results, err := cli.OpenResults(path)
	if err != nil {
		return report.Summary{}, err
	}
	defer results.Close()
	if err := o.AddSteady(results.Run, results.Reader); err != nil {
		return report.Summary{}, err
	}
	s, err := report.Summarise(results.Run, results.Reader(), o)
	s.Series = report.Series{} // the plots of hundreds of runs are not needed
	if err == nil && into != nil {
		err = into.Add(results.Run, results.Reader())
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return s, err
}

// againstProduction compares a replay with what its trace recorded.
func (f *compareFlags) againstProduction(cmd *cobra.Command, args []string,
	o compare.Options) (c compare.Comparison, err error) {
	switch {
	case len(f.a)+len(f.b)+len(f.arms) > 0 || len(args) != 1:
		return c, cli.Usagef("--production takes the results of one replay: reprise compare --production TRACE RESULTS")
	case f.gate:
		return c, cli.Usagef("--gate: one replay cannot give a verdict")
	case f.detect != "":
		return c, cli.Usagef("--detect needs rounds, and --production has none")
	}
	t, err := cli.OpenTrace(cmd, f.production)
	if err != nil {
		return c, err
	}
	defer t.Close()
	s, err := f.summarise(cmd, args[0], nil)
	if err != nil {
		return c, err
	}
	results, err := cli.OpenResults(args[0])
	if err != nil {
		return c, err
	}
	defer results.Close()
	recorded, err := trace.Columns[compare.Recorded](t)
	if err != nil {
		return c, err
	}
	c, err = compare.Production(t.Meta, recorded, s, results.Reader(), o)
	if err != nil {
		err = fmt.Errorf("%s and %s: %w", cmp.Or(f.production, "stdin"), args[0], err)
	}
	return c, err
}

// maxSideName is how long the name of a side may be: it is the head of a column.
const maxSideName = 32

// nameSides gives both sides the names that the flags give.
func (f *compareFlags) nameSides(arms []bench.Arm) error {
	if len(arms) > 2 && f.names != [2]string{} {
		return cli.Usagef("--name-a and --name-b name two sides, and there are %d", len(arms))
	}
	for i := range min(len(arms), 2) {
		arms[i].Name = cmp.Or(f.names[i], arms[i].Name)
	}
	if arms[0].Name == arms[1].Name {
		return cli.Usagef("both sides are called %s: give them two names, by --name-a and --name-b", arms[0].Name)
	}
	return nil
}

// lookupTime is how long the names of two servers may take to be resolved.
const lookupTime = 5 * time.Second

// oneServer says whether two endpoints may be one server by two names: they have a
// port and an address in common. One whose name cannot be resolved is another, unless
// it has the same name.
//
// Two servers of one address, such as an ingress, count as one too. A mistake costs
// little in that direction: in the other, one side would find the prompts of the other.
func oneServer(ctx context.Context, urls [2]string) bool {
	if urls[0] == "" || urls[1] == "" {
		return false
	}
	if flags.Origin(urls[0]) == flags.Origin(urls[1]) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	var ports [2]string
	var hosts [2][]string
	for i, s := range urls {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Scheme == "unix" {
			return false
		}
		if ports[i] = u.Port(); ports[i] == "" {
			ports[i] = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		if hosts[i], err = net.DefaultResolver.LookupHost(ctx, u.Hostname()); err != nil {
			hosts[i] = []string{strings.ToLower(u.Hostname())}
		}
		if slices.ContainsFunc(hosts[i], ofThisMachine) {
			hosts[i] = append(hosts[i], "127.0.0.1")
		}
	}
	return ports[0] == ports[1] &&
		slices.ContainsFunc(hosts[0], func(h string) bool { return slices.Contains(hosts[1], h) })
}

// ofThisMachine says whether an address is one of the machine that asks.
func ofThisMachine(address string) bool {
	ip := net.ParseIP(address)
	if ip == nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	return ip.IsLoopback() || ip.IsUnspecified() || err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}
