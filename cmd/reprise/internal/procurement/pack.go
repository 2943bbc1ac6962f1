// Package procurement has the commands pack and verify, which bind what a procurement asks for
// and hold submissions to it.
//
// # Files
//
//   - pack.go: pack: the pack and the secret seed; the workload of a seed
//   - verify.go: verify: a run or a submission held to its pack
package procurement

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/datasets"
	"reprise/replay/contract"
	"reprise/replay/report"
	"reprise/replay/scenario"
	"reprise/replay/tender"
	"reprise/synth/spec"
	"reprise/trace"
	"reprise/trace/objectstore"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// A Command is what the two commands share with others.
type Command struct {
	// Spec reads the specification of a workload, as synth does; nil where it is none.
	Spec func(arg string) (*spec.Spec, error)
	// Kept is the error of a run that cannot be trusted, or does not keep to its contract.
	Kept func(report.Summary) error
}

// packFlags are the flags of pack.
type packFlags struct {
	Command
	name, contract, rules, out string
	system                     []string
	asJSON                     bool
}

// Pack is the command pack.
func (c Command) Pack() *cobra.Command {
	f := packFlags{Command: c}
	cmd := &cobra.Command{
		Use:   "pack WORKLOAD -o PACK.yaml",
		Short: "Bind workload, contract and rules of a procurement in one file",
		Long: `Pack writes one file of digests that a procurement publishes: of the specification of the
workload, of the rows that a secret seed makes of it, of the contract, of the rules of the
run (a scenario), and what must be said of the system. It holds a commitment to the seed,
and not the seed, which goes to PACK.seed.yaml: keep that until the test.

At the test publish PACK.seed.yaml. Whoever submits makes the workload by "synth
WORKLOAD --seed N", replays it, and hands in what "reprise verify" writes.

WORKLOAD is a specification (.yaml) or a built-in workload. Files are named from where the
pack is, so they must be beside it.`,
		Example: `  reprise pack chat --contract contract.yaml -o tender.yaml
  reprise pack workload.yaml --contract contract.yaml --scenario rules.yaml --require gpu,gpus,engine,quantization -o bids.yaml`,
		Args: flags.Wants(1, 1, "which workload?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fl := cmd.Flags()
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	judgement, _ := flags.Sections(fl, flags.JudgementFlags)
	results.OutputVar(&f.out, "`file` for the pack; the seed goes to a file beside it")
	results.StringVar(&f.name, "name", "", "name of the procurement; by default that of the file")
	results.BoolVar(&f.asJSON, "json", false, "print JSON")
	judgement.StringVar(&f.contract, "contract", "", "YAML `file` with the contract")
	judgement.StringVar(&f.rules, "scenario", "", "YAML `file` with the rules of the run; see docs/scenarios.md")
	judgement.StringSliceVar(&f.system, "require", []string{"gpu", "gpus", "engine"}, "what must be said of the system: "+strings.Join(tender.SystemFields(), ", "))
	return cmd
}

// specText reads the specification of a workload, by its file or the name of a built-in one.
func specText(arg string) (text []byte, builtIn bool, err error) {
	if text, err = objectstore.ReadFile(arg); err == nil {
		return text, false, nil
	}
	if text, builtIn = datasets.Workload(arg); builtIn {
		return text, true, nil
	}
	return nil, false, cli.Usagef("%s is neither a file nor a built-in workload; reprise synth --help lists those", arg)
}

func (f *packFlags) run(cmd *cobra.Command, arg string) error {
	switch {
	case f.out == "" || f.out == cli.Standard:
		return cli.Usagef("give the pack a file: -o tender.yaml")
	case f.contract == "":
		return cli.Usagef("a pack binds a contract: give --contract FILE")
	}
	for _, name := range f.system {
		if !slices.Contains(tender.SystemFields(), name) {
			return cli.Usagef("--require: want some of %s", strings.Join(tender.SystemFields(), ", "))
		}
	}
	secret := strings.TrimSuffix(f.out, filepath.Ext(f.out)) + ".seed.yaml"
	if _, err := objectstore.Stat(secret); err == nil {
		return cli.Usagef("%s exists: it is the seed of another pack; move it away first", secret)
	}
	p := &tender.Pack{Name: f.name, System: f.system}
	if p.Name == "" {
		p.Name = strings.TrimSuffix(filepath.Base(f.out), filepath.Ext(f.out))
	}
	if strings.ContainsFunc(p.Name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) {
		return cli.Usagef("--name: want a line of text without quotes")
	}
	bind := func(to *tender.Bound, path string, text []byte) error {
		name, err := filepath.Rel(filepath.Dir(f.out), path)
		if name = filepath.ToSlash(name); err != nil || !tender.Beside(name) {
			return cli.Usagef("%s is not in the folder of the pack or below: a pack names files from where it is", path)
		}
		*to = tender.Bind(name, text)
		return nil
	}
	text, builtIn, err := specText(arg)
	if err != nil {
		return err
	}
	p.BuiltIn, p.Workload = builtIn, tender.Bind(arg, text)
	if !builtIn {
		if err := bind(&p.Workload, arg, text); err != nil {
			return err
		}
	}
	if text, err = objectstore.ReadFile(f.contract); err != nil {
		return err
	}
	terms, err := contract.Parse(f.contract, text)
	if err == nil {
		err = terms.Check(report.SLO{})
	}
	if err != nil {
		return cli.Exit(cli.Usage, err)
	}
	if err := bind(&p.Contract, f.contract, text); err != nil {
		return err
	}
	if f.rules != "" {
		if text, err = objectstore.ReadFile(f.rules); err != nil {
			return err
		}
		if _, err := scenario.Find(f.rules); err != nil {
			return cli.Exit(cli.Usage, err)
		}
		if err := bind(&p.Rules, f.rules, text); err != nil {
			return err
		}
	}
	seed := tender.NewSeed()
	p.Commits = seed.Commitment()
	rows, _, err := f.rows(arg, seed.Seed)
	if err != nil {
		return err
	}
	sum, n := trace.NewDigest(), int64(0)
	if err := trace.Each(rows, func(_ int64, r *trace.Request) error { n++; sum.Add([]trace.Request{*r}); return nil }); err != nil {
		return err
	}
	p.Digest = sum.Sum()
	write := func(path string, mode os.FileMode, text []byte) error {
		return trace.WriteFile(path, mode, func(w io.Writer) error { _, err := w.Write(text); return err })
	}
	if _, err := tender.ParsePack(f.out, p.Text()); err != nil { // as whoever reads it will
		return err
	}
	if err := write(secret, 0o600, seed.Text()); err != nil {
		return err
	}
	if err := write(f.out, 0o644, p.Text()); err != nil {
		return err
	}
	if f.asJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"pack": f.out, "seed": secret, "workload_digest": p.Digest, "requests": n, "seed_commitment": p.Commits})
	}
	t := textpage.New(cli.TextOptions(cmd, ""))
	t.Line("", fmt.Sprintf("%s: publish it, with the files that it names. Workload of %s, %s.", f.out, page.Many(n, "request"), p.Digest))
	t.Line("", secret+": keep it secret until the test. Whoever has it knows the workload.")
	_, err = t.WriteTo(cmd.OutOrStdout())
	return err
}

// rows are those that a seed makes of a specification, as synth does.
func (c Command) rows(arg string, seed uint64) (trace.Reader[trace.Request], []byte, error) {
	text, _, err := specText(arg)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.Spec(arg)
	switch {
	case err != nil:
		return nil, nil, cli.Exit(cli.Usage, err)
	case s == nil:
		return nil, nil, cli.Usagef("%s is no specification of a workload: want a .yaml file, or a built-in workload", arg)
	}
	rows, err := s.Rows(seed)
	return rows, text, err
}
