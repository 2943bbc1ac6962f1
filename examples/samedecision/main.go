// Command samedecision tells whether a release leads to the decisions that its source
// leads to. It plays both to simulated engines, in virtual time, and prints
//
//   - the highest rate within a contract, as `reprise sweep` finds it, and
//   - what each of 23 changes of the engines does to the p95 of TTFT, as `reprise compare`
//     finds it, in rounds of Poisson arrivals.
//
// `reprise fidelity --decisions` does so for one workload, with limits. This command
// compares many, such as draws of models with noise of their own. A change that does less than 2 % to the source, or not the same in every round, is no
// decision and counts for nothing.
//
//	reprise import mooncake_conversation.jsonl --capture-begin 0s --capture-end 1h -o t.parquet
//	go run ./examples/samedecision -epsilon 8 -draws 10 t.parquet
//	go run ./examples/samedecision t.parquet w.parquet
//
// With -draws it fits models of the source, each with noise of its own, and draws a
// workload from each. They stay in memory: nothing is released, and no ledger counts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/anonymize/dp"
	"reprise/replay/bench"
	"reprise/replay/contract"
	"reprise/replay/decision"
	"reprise/replay/engine"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

func main() {
	var c comparison
	clause := flag.String("contract", "p95 ttft <= 4s", "clause that capacity is within")
	flag.Float64Var(&c.rate, "rate", 0, "requests per second at which changes are compared; 0 is the source's mean rate")
	flag.Uint64Var(&c.rounds, "rounds", 2, "rounds of each change, and seeds of each sweep, whose mean counts")
	flag.BoolVar(&c.noSweep, "no-sweep", false, "leave out the capacities")
	flag.BoolVar(&c.noChanges, "no-changes", false, "leave out the changes")
	epsilons := flag.String("epsilon", "8", "ε of the models that -draws fits, such as 8,4")
	draws := flag.Int("draws", 0, "fit so many models of the source at each ε, and play a workload of each")
	baselines := flag.Bool("baselines", false, "also play the source shuffled, and without its blocks")
	flag.Parse()
	if flag.NArg() < 1 {
		log.Fatal("usage: samedecision SOURCE.parquet [RELEASE.parquet ...]")
	}
	terms, err := contract.Parse("", []byte("clauses: ['"+*clause+"']"))
	if err != nil {
		log.Fatal(err)
	}
	c.clause, c.terms = *clause, &terms
	source, err := open(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	c.add("source", source)
	for _, path := range flag.Args()[1:] {
		w, err := open(path)
		if err != nil {
			log.Fatal(err)
		}
		c.add(filepath.Base(path), w)
	}
	if *draws > 0 {
		for _, text := range strings.Split(*epsilons, ",") {
			epsilon, err := strconv.ParseFloat(text, 64)
			if err != nil {
				log.Fatal(err)
			}
			g := group{name: "ε = " + text}
			for i := range *draws {
				w, refused, err := draw(source, epsilon, uint64(i))
				if err != nil {
					log.Fatal(err)
				}
				if refused > 0 {
					log.Printf("ε = %s, %d: %d models before were refused as too noisy", text, i+1, refused)
				}
				g.workloads = append(g.workloads, w)
			}
			c.groups = append(c.groups, g)
		}
	}
	if *baselines {
		c.add("shuffled", shuffled(source))
		c.add("no shared prefixes", source.WithoutBlocks())
	}
	if err := c.run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func open(path string) (*decision.Workload, error) {
	t, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	rows, err := t.Reader()
	if err != nil {
		return nil, err
	}
	return decision.Read(t.Meta, rows, 0)
}

// draw fits models with fresh noise until one may be released, and draws a workload from it.
func draw(source *decision.Workload, epsilon float64, seed uint64) (w *decision.Workload, refused int, err error) {
	var m *release.Model
	for m == nil {
		o := release.Options{Budget: dp.Budget{Epsilon: epsilon, Delta: 1e-6}, Unit: synth.UnitSession}
		m, _, err = release.Fit(context.Background(), &trace.SliceReader[trace.Request]{Rows: source.Rows}, source.Meta, o)
		var noisy *release.TooNoisy
		switch {
		case errors.As(err, &noisy) && refused < mostRefused:
			refused++
		case err != nil:
			return nil, refused, err
		}
	}
	r, err := m.Generate(release.Drawing{Seed: seed})
	if err != nil {
		return nil, refused, err
	}
	w, err = decision.Read(r.Meta(), r.Reader(), 0)
	return w, refused, err
}

// mostRefused is how many models in a row may be refused.
const mostRefused = 20

// shuffled is the workload with its requests in another order, so that lengths and
// prefixes stay, and the time until a prefix is used again does not.
func shuffled(w *decision.Workload) *decision.Workload {
	out := &decision.Workload{Meta: w.Meta, Rows: slices.Clone(w.Rows)}
	rng := rand.New(rand.NewPCG(1, 0))
	rng.Shuffle(len(out.Rows), func(i, j int) { out.Rows[i], out.Rows[j] = out.Rows[j], out.Rows[i] })
	for i := range out.Rows {
		out.Rows[i].ArrivalNS = w.Rows[i].ArrivalNS
	}
	return out
}

// meanRate is the workload's requests per second.
func meanRate(w *decision.Workload) float64 {
	return float64(len(w.Rows)-1) / time.Duration(w.Rows[len(w.Rows)-1].ArrivalNS-w.Rows[0].ArrivalNS).Seconds()
}

// moreChanges go beyond [decision.Changes]: they do next to nothing to the Mooncake
// conversation trace.
var moreChanges = []decision.Change{
	{Name: "KV of 4 M tokens, prefill 5 % slower", Set: func(f *engine.FleetConfig) { f.Engine.KVTokens = 4_000_000; decision.Prefill(f, 1.05) }},
	{Name: "load weight 100", Set: func(f *engine.FleetConfig) { f.LoadWeight = 100 }},
	{Name: "5 replicas, prefill 20 % slower", Set: func(f *engine.FleetConfig) { f.Replicas = 5; decision.Prefill(f, 1.2) }},
}

// A comparison plays workloads to engines.
type comparison struct {
	groups             []group // the first is the source alone
	clause             string
	terms              *contract.Contract
	rate               float64
	rounds             uint64
	noSweep, noChanges bool
}

// A group is workloads that are to say the same, such as those of models with noise of
// their own.
type group struct {
	name      string
	workloads []*decision.Workload
}

func (c *comparison) add(name string, w ...*decision.Workload) {
	c.groups = append(c.groups, group{name, w})
}

func (c *comparison) run(ctx context.Context, out io.Writer) error {
	if c.rate == 0 {
		c.rate = meanRate(c.groups[0].workloads[0])
	}
	if !c.noSweep {
		if err := c.capacities(ctx, out); err != nil {
			return err
		}
	}
	if c.noChanges {
		return nil
	}
	return c.changes(ctx, out)
}

// capacities prints the highest rate within the contract of each group, and how far off
// the source's its workloads are.
func (c *comparison) capacities(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "| workload | req/s within %s | off, median | worst |\n|---|--:|--:|--:|\n", c.clause)
	source := 0.0
	for _, g := range c.groups {
		var all []float64
		for i, w := range g.workloads {
			at := 0.0
			for seed := range c.rounds {
				highest, err := decision.Capacity(ctx, w, c.terms, c.ladder(), seed+1)
				if err != nil {
					return err
				}
				at += highest / float64(c.rounds)
			}
			all = append(all, at)
			log.Printf("%s, %d: %.2f req/s", g.name, i+1, at)
		}
		if source == 0 {
			source = all[0]
		}
		slices.Sort(all)
		off := make([]float64, len(all))
		for i, x := range all {
			off[i] = 100 * (x/source - 1)
		}
		worst := off[0]
		if -off[0] < off[len(off)-1] {
			worst = off[len(off)-1]
		}
		size := fmt.Sprintf("%.2f", median(all))
		if len(all) > 1 {
			size += fmt.Sprintf(" (%.2f to %.2f)", all[0], all[len(all)-1])
		}
		fmt.Fprintf(out, "| %s | %s | %+.1f %% | %+.1f %% |\n", g.name, size, median(off), worst)
	}
	_, err := fmt.Fprintln(out)
	return err
}

// ladder is the rates that a sweep tries before it looks between them.
func (c *comparison) ladder() (l bench.Ladder) {
	for share := 0.8; share < 3; share += 0.1 {
		l.Loads = append(l.Loads, math.Round(100*share*c.rate)/100)
	}
	return l
}

// effects plays every change in rounds, each beside the base with the same arrivals.
func (c *comparison) effects(ctx context.Context, w *decision.Workload) ([]decision.Effect, error) {
	out := make([]decision.Effect, len(engineChanges))
	for round := range c.rounds {
		base, err := decision.P95(ctx, w, decision.BaseFleet(), c.rate, round+1)
		if err != nil {
			return nil, err
		}
		for i, change := range engineChanges {
			f := decision.BaseFleet()
			change.Set(&f)
			changed, err := decision.P95(ctx, w, f, c.rate, round+1)
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], math.Log(changed/base))
		}
	}
	return out, nil
}

var engineChanges = append(decision.Changes(), moreChanges...)

// median is that of sorted values.
func median(x []float64) float64 { return (x[(len(x)-1)/2] + x[len(x)/2]) / 2 }

// changes prints what each change does: to the source, and in the median to the workloads of
// each other group, with how many of them agree in sign.
func (c *comparison) changes(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "| p95 TTFT at %.3g req/s |", c.rate)
	rule := "\n|---|"
	effects := make([][][]decision.Effect, len(c.groups)) // by group and workload
	for i, g := range c.groups {
		fmt.Fprintf(out, " %s |", g.name)
		rule += "--:|"
		for j, w := range g.workloads {
			all, err := c.effects(ctx, w)
			if err != nil {
				return err
			}
			effects[i] = append(effects[i], all)
			log.Printf("%s, %d: %d changes", g.name, j+1, len(all))
		}
	}
	fmt.Fprintln(out, rule)
	decisions, agree := 0, make([][]int, len(c.groups))
	for i := range agree {
		agree[i] = make([]int, len(effects[i]))
	}
	for k, change := range engineChanges {
		source := &effects[0][0][k]
		fmt.Fprintf(out, "| %s | %+.1f %%", change.Name, source.Percent())
		if !source.Decides() {
			fmt.Fprint(out, ": no decision")
		} else {
			decisions++
		}
		for i := range c.groups[1:] {
			var all []float64
			same := 0
			for j := range effects[i+1] {
				e := &effects[i+1][j][k]
				all = append(all, e.Percent())
				if source.Decides() && e.SameSign(*source) {
					agree[i+1][j]++
					same++
				}
			}
			slices.Sort(all)
			fmt.Fprintf(out, " | %+.1f %%", median(all))
			switch n := len(all); {
			case !source.Decides() || same == n:
			case n == 1:
				fmt.Fprint(out, " **other sign**")
			default:
				fmt.Fprintf(out, " **%d of %d**", same, n)
			}
		}
		fmt.Fprintln(out, " |")
	}
	fmt.Fprintf(out, "| same sign, of %d | |", decisions)
	for _, by := range agree[1:] {
		slices.Sort(by)
		slices.Reverse(by)
		fmt.Fprintf(out, " %s |", strings.Trim(fmt.Sprint(by), "[]"))
	}
	_, err := fmt.Fprintln(out)
	return err
}
