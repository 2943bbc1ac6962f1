package machines

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/ceiling"
	"reprise/replay/client"
	"reprise/replay/host"
	"reprise/replay/job"
	"reprise/trace/page"
	"reprise/trace/quantity"
	"reprise/trace/textpage"
)

// planFlags are the flags of job --plan.
type planFlags struct {
	plan, asJSON         bool
	rate                 string
	tokens, servers      int
	connections          string
	latency, took, apart time.Duration
}

func (f *planFlags) register(cmd *cobra.Command) {
	load, _ := flags.Sections(cmd.Flags(), flags.LoadFlags)
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	load.BoolVar(&f.plan, "plan", false, "say how many machines like this one send --rate, and what runs out first")
	load.StringVar(&f.rate, "rate", "", "requests per `second` that are wanted, such as 5000 or 1M")
	load.IntVar(&f.tokens, "output-tokens", 200, "tokens of an answer, on average")
	load.DurationVar(&f.latency, "latency", 5*time.Second, "time of a request, on average")
	load.DurationVar(&f.took, "duration", time.Hour, "length of the run")
	load.IntVar(&f.servers, "servers", 1, "addresses that the requests go to")
	load.StringVar(&f.connections, "connections", client.Pooled, "pooled (used again) or per-request")
	load.DurationVar(&f.apart, "clock-offset", time.Millisecond, "how far the clocks of two machines may be apart")
	results.BoolVar(&f.asJSON, "json", false, "print JSON")
}

func (f *planFlags) run(cmd *cobra.Command) error {
	if !f.plan {
		return cli.Usagef("what kind of job? reprise job replay WORKLOAD prints one, reprise job --plan --rate 1M plans one")
	}
	rate, err := quantity.Rate(f.rate)
	if n, other := quantity.Count(f.rate); other == nil {
		rate, err = float64(n), nil
	}
	switch {
	case f.rate == "" || err != nil || rate <= 0:
		return cli.Usagef("--plan needs a rate in requests per second: --rate 5000, 300/min or 1M")
	case f.connections != client.Pooled && f.connections != client.PerRequest:
		return cli.Usagef("--connections: want %s or %s", client.Pooled, client.PerRequest)
	}
	most, err := ceiling.Saved()
	if err != nil {
		return err
	}
	if most == nil {
		return cli.Usagef("a plan needs the ceiling of this machine, or of one like those that are to send: reprise check --self measures it in ten seconds")
	}
	d := job.Demand{Rate: rate, Tokens: float64(f.tokens), Latency: f.latency, Length: f.took, Servers: f.servers, Pooled: f.connections == client.Pooled, ClockOff: f.apart}
	p, err := d.Plan(job.Machine{Ceiling: *most, Ports: host.LocalPorts(), Files: host.FileLimit()})
	if err != nil {
		return cli.Usagef("%v", err)
	}
	if f.asJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), p)
	}
	out := textpage.New(cli.TextOptions(cmd, ""))
	first := p.Needs[0]
	out.Line("", fmt.Sprintf("%s like this one (%d cores): %s runs out first", page.Many(int64(p.Machines), "machine"), most.Cores, first.Resource))
	out.Blank()
	rows := [][]string{}
	for _, n := range p.Needs {
		rows = append(rows, []string{n.Resource, page.Brief(int64(n.Machines)), page.Number(n.Has), page.Number(n.Asked)})
	}
	out.Table("Machines by what each resource asks for", []string{"resource", "machines", "one has", "all ask for"}, rows)
	for _, n := range p.Needs {
		out.Line("", n.Resource+": "+n.Says)
	}
	out.Blank()
	out.Facts("What else grows with the load", [][]string{
		{"in flight", page.Number(p.InFlight) + " requests, as many connections at the servers"},
		{"clocks", fmt.Sprintf("%s are due within %v: which of two machines sent first is not known there", page.Many(int64(p.Unordered), "request"), f.apart)},
		{"volume", fmt.Sprintf("%s of results in %s; journals write %s/s meanwhile, %s/s each", inBytes(p.Bytes), cmd.Flags().Lookup("duration").Value, inBytes(p.BytesASec), inBytes(p.MachineSec))},
		{"merge", inBytes(p.MergeBytes) + " of memory, for " + page.Number(p.Rows) + " requests"},
	})
	_, err = out.WriteTo(cmd.OutOrStdout())
	return err
}

// inBytes is a size with a decimal unit.
func inBytes(n float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	at := 0
	for n >= 1000 && at < len(units)-1 {
		n /= 1000
		at++
	}
	return page.Number(n) + " " + units[at]
}
