package flags

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/contract"
	"reprise/replay/peer"
	"reprise/replay/report"
)

// Judge says how results are summarised and judged.
type Judge struct {
	Definitions string
	NoSteady    bool
	Instants    string
	VLLM        VLLMResult
	AsJSON      bool
	HTML        string
	SLO         string
	By          []string
	ServerBlock int
	Trust       Trust
	Contract
}

// Register adds the flags, with those of the contract and of the limits of trust.
func (f *Judge) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	results, resultsRest := Sections(fl, ResultsFlags)
	judgement, judgementRest := Sections(fl, JudgementFlags)
	results.BoolVar(&f.AsJSON, "json", false, "print the summary as JSON")
	f.RegisterPages(fl)
	judgement.StringVar(&f.SLO, "slo", "",
		"objectives that a request must meet to count as goodput, such as ttft:200ms,tpot:50ms,e2e:5s")
	resultsRest.StringSliceVar(&f.By, "by", nil,
		"split requests by a `column`, such as user, adapter, class, turn or status; repeatable")
	f.Trust.Register(cmd)
	f.Contract.Register(cmd)
	judgementRest.StringVar(&f.Definitions, "definitions", OwnDefinitions,
		"compute metrics as another tool does: "+OwnDefinitions+", "+strings.Join(peer.Presets(), ", "))
	judgementRest.BoolVar(&f.NoSteady, "no-steady", false, "")
	judgementRest.StringVar(&f.Instants, "instants", report.InstantsRead, "")
	f.VLLM.register(cmd)
}

// RegisterPages registers what asks for files beside the report.
func (f *Judge) RegisterPages(fl *pflag.FlagSet) {
	everyday, _ := Sections(fl, ResultsFlags)
	everyday.FileVar(&f.HTML, "html", "write a self-contained HTML `page`")
	Details(fl)
}

// Details registers --details, which [cli.TextOptions] reads.
func Details(fl *pflag.FlagSet) {
	results, _ := Sections(fl, ResultsFlags)
	results.Bool("details", false, "print all tables, not only the answer")
}

// OwnDefinitions is the value of --definitions for those of Reprise.
const OwnDefinitions = "reprise"

// Check refuses flags before anything is sent or read. document says whether a
// document of vLLM's is written, and how names the flag that writes one.
func (f *Judge) Check(document bool, how string) error {
	if f.Definitions != OwnDefinitions && !slices.Contains(peer.Presets(), f.Definitions) {
		return cli.Usagef("--definitions: want %s or one of %s", OwnDefinitions, strings.Join(peer.Presets(), ", "))
	}
	switch f.Instants {
	case report.InstantsRead:
	case report.InstantsKernel:
		if f.Definitions != OwnDefinitions {
			return cli.Usagef("--set instants=%s is for Reprise's own definitions; leave out --definitions",
				report.InstantsKernel)
		}
	default:
		return cli.Usagef("--set instants: want %s or %s", report.InstantsRead, report.InstantsKernel)
	}
	if err := f.VLLM.check(document, how); err != nil {
		return err
	}
	_, err := f.Options()
	return err
}

// Defaults sets every flag to its default, for a caller that is no command line.
func (f *Judge) Defaults() { f.Register(new(cobra.Command)) }

// Options are those of a report. Replay reads them before it sends.
func (f *Judge) Options() (report.Options, error) {
	o := report.Options{By: f.By, ServerBlock: f.ServerBlock, Limits: f.Trust.Limits, Instants: f.Instants}
	var err error
	if f.SLO == "" {
		if o.SLO, err = peer.ParseGoodput(f.VLLM.goodput); err != nil {
			return o, cli.Usagef("--goodput: %v", err)
		}
	} else if o.SLO, err = report.ParseSLO(f.SLO); err != nil {
		return o, cli.Usagef("--slo: %v", err)
	}
	for _, name := range f.By {
		if _, err := report.FindColumn(name); err != nil {
			return o, cli.Usagef("--by %s: %v", name, err)
		}
	}
	c, err := f.Read()
	if err != nil || c == nil {
		return o, err
	}
	o.Contract = c
	if err := o.Check(); err != nil {
		return o, cli.Usagef("%s: %v", f.Path, err)
	}
	return o, nil
}

// Contract says what a run has to keep to, and what its GPUs cost.
type Contract struct {
	Path     string
	gpus     []int
	Price    float64
	Alone    bool               // GPUs and price have a meaning without a contract
	contract *contract.Contract // once, before anything is sent
}

// Register adds the flags.
func (f *Contract) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	everyday, rest := Sections(fl, JudgementFlags)
	everyday.StringVar(&f.Path, "contract", "",
		"YAML `file` with clauses that the run must meet, such as p95 ttft <= 1s; else the exit code is 3")
	rest.IntSliceVar(&f.gpus, "gpus", "")
	rest.NumberVar(&f.Price, "price-per-gpu-hour", 0, "")
}

// Read reads the contract that the flags name, once. It is nil when they name none.
func (f *Contract) Read() (*contract.Contract, error) {
	switch {
	case !(f.Price >= 0):
		return nil, cli.Usagef("price-per-gpu-hour: want a number above zero")
	case f.Path == "" && !f.Alone && f.Price > 0:
		return nil, cli.Usagef("price-per-gpu-hour needs a contract about cost: give --contract FILE")
	case f.Path == "" || f.contract != nil:
		return f.contract, nil
	}
	c, err := contract.Read(f.Path)
	if errors.As(err, new(*fs.PathError)) {
		return nil, err
	}
	if err != nil {
		return nil, cli.Exit(cli.Usage, err)
	}
	if len(f.gpus) > 0 {
		c.GPUs = f.gpus[0]
	}
	if f.Price > 0 {
		c.PricePerGPUHour = f.Price
	}
	f.contract = &c
	return f.contract, nil
}

// GPUsOf is how many GPUs the servers of run i of n had, 0 when that was not said.
func (f *Judge) GPUsOf(i, n int) (int, error) {
	for _, g := range f.gpus {
		if g < 1 {
			return 0, cli.Usagef("gpus: want a number above zero, or one for each results file")
		}
	}
	switch len(f.gpus) {
	case 0:
		return 0, nil
	case 1:
		return f.gpus[0], nil
	case n:
		return f.gpus[i], nil
	}
	return 0, cli.Usagef("gpus has %d numbers for %d results files", len(f.gpus), n)
}

// SetGPUs says how many GPUs run i of n had, to the contract as well. What the flags
// do not say, the contract may.
func (f *Judge) SetGPUs(o *report.Options, i, n int) (err error) {
	given := contract.Of(*o)
	if o.GPUs, err = f.GPUsOf(i, n); err != nil || given == nil {
		return err
	}
	o.PricePerGPUHour = given.PricePerGPUHour
	if o.GPUs == 0 {
		o.GPUs = given.GPUs
		return nil
	}
	c := *given
	c.GPUs = o.GPUs
	o.Contract = &c
	return nil
}
