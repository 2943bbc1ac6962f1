// Command samedecision tells whether a release leads to the decisions that its source
// leads to. It plays both to simulated engines, in virtual time, and prints
//
//   - the highest rate within a contract, as `reprise sweep` finds it, and
//   - what each of 23 changes of the engines does to the p95 of TTFT, as `reprise compare`
//     finds it, in rounds of Poisson arrivals.
//
// A change that does less than 2 % to the source, or not the same in every round, is no
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
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/anonymize/dp"
	"reprise/replay/contract"
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
		c.add("shuffled", source.shuffled())
		c.add("no shared prefixes", source.withoutBlocks())
	}
	if err := c.run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// A workload is rows in memory.
type workload struct {
	meta trace.Meta
	rows []trace.Request
}

func open(path string) (*workload, error) {
	t, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	rows, err := t.Reader()
	if err != nil {
		return nil, err
	}
	w := &workload{meta: t.Meta}
	err = trace.Each(rows, func(_ int64, r *trace.Request) error {
		row := *r
		row.Blocks = slices.Clone(r.Blocks)
		w.rows = append(w.rows, row)
		return nil
	})
	return w, err
}

// draw fits models with fresh noise until one may be released, and draws a workload from it.
func draw(source *workload, epsilon float64, seed uint64) (w *workload, refused int, err error) {
	var m *release.Model
	for m == nil {
		o := release.Options{Budget: dp.Budget{Epsilon: epsilon, Delta: 1e-6}, Unit: synth.UnitSession}
		m, _, err = release.Fit(context.Background(), &trace.SliceReader[trace.Request]{Rows: source.rows}, source.meta, o)
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
	w = &workload{meta: r.Meta()}
	err = trace.Each(r.Reader(), func(_ int64, row *trace.Request) error {
		one := *row
		one.Blocks = slices.Clone(row.Blocks)
		w.rows = append(w.rows, one)
		return nil
	})
	return w, refused, err
}

// mostRefused is how many models in a row may be refused.
const mostRefused = 20

// shuffled is the workload with its requests in another order, so that lengths and
// prefixes stay, and the time until a prefix is used again does not.
func (w *workload) shuffled() *workload {
	out := &workload{meta: w.meta, rows: slices.Clone(w.rows)}
	rng := rand.New(rand.NewPCG(1, 0))
	rng.Shuffle(len(out.rows), func(i, j int) { out.rows[i], out.rows[j] = out.rows[j], out.rows[i] })
	for i := range out.rows {
		out.rows[i].ArrivalNS = w.rows[i].ArrivalNS
	}
	return out
}

// withoutBlocks is the workload without shared prefixes: what a benchmark of lengths and
// times alone sends.
func (w *workload) withoutBlocks() *workload {
	out := &workload{meta: w.meta, rows: slices.Clone(w.rows)}
	next := uint64(0)
	for i := range out.rows {
		blocks := make([]uint64, len(out.rows[i].Blocks))
		for j := range blocks {
			blocks[j], next = next, next+1
		}
		out.rows[i].Blocks = blocks
	}
	return out
}

// meanRate is the workload's requests per second.
func (w *workload) meanRate() float64 {
	return float64(len(w.rows)-1) / time.Duration(w.rows[len(w.rows)-1].ArrivalNS-w.rows[0].ArrivalNS).Seconds()
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
	workloads []*workload
}

func (c *comparison) add(name string, w ...*workload) {
	c.groups = append(c.groups, group{name, w})
}

func (c *comparison) run(ctx context.Context, out io.Writer) error {
	if c.rate == 0 {
		c.rate = c.groups[0].workloads[0].meanRate()
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
				highest, err := c.sweep(ctx, w, seed+1)
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

// median is that of sorted values.
func median(x []float64) float64 { return (x[(len(x)-1)/2] + x[len(x)/2]) / 2 }

// changes prints what each change does: to the source, and in the median to the workloads of
// each other group, with how many of them agree in sign.
func (c *comparison) changes(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "| p95 TTFT at %.3g req/s |", c.rate)
	rule := "\n|---|"
	effects := make([][][]effect, len(c.groups)) // by group and workload
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
		fmt.Fprintf(out, "| %s | %+.1f %%", change.name, source.percent())
		if !source.decides() {
			fmt.Fprint(out, ": no decision")
		} else {
			decisions++
		}
		for i := range c.groups[1:] {
			var all []float64
			same := 0
			for j := range effects[i+1] {
				e := &effects[i+1][j][k]
				all = append(all, e.percent())
				if source.decides() && e.mean() > 0 == (source.mean() > 0) {
					agree[i+1][j]++
					same++
				}
			}
			slices.Sort(all)
			fmt.Fprintf(out, " | %+.1f %%", median(all))
			switch n := len(all); {
			case !source.decides() || same == n:
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
