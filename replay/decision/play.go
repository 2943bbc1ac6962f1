package decision

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// A Workload is rows in memory.
type Workload struct {
	Meta trace.Meta
	Rows []trace.Request
}

// Read keeps the first rows that did not fail, at most so many; 0 is all. What is generated
// stays unknown to caches, since a synthesised workload does not tell it.
func Read(meta trace.Meta, src trace.Reader[trace.Request], most int) (*Workload, error) {
	w := &Workload{Meta: meta}
	enough := errors.New("enough")
	err := trace.Each(src, func(_ int64, r *trace.Request) error {
		switch {
		case r.Status == trace.StatusFailed:
			return nil
		case most > 0 && len(w.Rows) == most:
			return enough
		}
		row := trace.Request{ArrivalNS: r.ArrivalNS, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Blocks: slices.Clone(r.Blocks)}
		if r.Session != nil {
			row.Session = trace.Ptr(*r.Session)
		}
		w.Rows = append(w.Rows, row)
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return w, err
}

// WithoutBlocks is the workload without shared prefixes: what a benchmark of lengths and
// times alone sends.
func (w *Workload) WithoutBlocks() *Workload {
	out := &Workload{Meta: w.Meta, Rows: slices.Clone(w.Rows)}
	next := uint64(0)
	for i := range out.Rows {
		blocks := make([]uint64, len(out.Rows[i].Blocks))
		for j := range blocks {
			blocks[j], next = next, next+1
		}
		out.Rows[i].Blocks = blocks
	}
	return out
}

// play plays a workload at a rate of Poisson arrivals.
func (w *Workload) play(ctx context.Context, f engine.FleetConfig, seed uint64, o replay.Options, rate string, dst *kept) (result.Run, error) {
	process, err := arrival.ParseProcess(rate)
	if err != nil {
		return result.Run{}, err
	}
	o.Arrivals = process.New(arrival.Stream(seed, "replay arrivals"))
	o.About = result.Run{Schema: result.Schema, Source: result.Source{BlockSize: w.Meta.BlockSize, ServerBlock: f.Engine.BlockSize},
		Simulation: result.Simulation{Simulated: "engine"}}
	_, run, err := bench.Simulation{Fleet: f, Rows: &again{w: w, once: !o.Endless}, BlockSize: w.Meta.BlockSize, Options: o, Results: dst}.Run(ctx)
	return run, err
}

// poisson spells Poisson arrivals at a rate.
func poisson(rate float64) string { return "poisson:" + strconv.FormatFloat(rate, 'g', -1, 64) }

// kept takes results as they come, without the gaps between tokens, which nothing here
// is about.
type kept struct{ rows []result.Result }

func (k *kept) Write(rows []result.Result) (int, error) {
	for _, r := range rows {
		r.GapsNS, r.Events = nil, min(r.Events, 1)
		k.rows = append(k.rows, r)
	}
	return len(rows), nil
}

// again reads the rows again and again, each time with prompts of their own.
type again struct {
	w     *Workload
	once  bool
	next  int
	round uint64
}

// Read implements [trace.Reader].
func (a *again) Read(rows []trace.Request) (int, error) {
	for i := range rows {
		if a.next == len(a.w.Rows) {
			if a.once {
				return i, io.EOF
			}
			a.next, a.round = 0, a.round+1
		}
		rows[i] = a.w.Rows[a.next]
		a.next++
		if a.round > 0 {
			blocks := make([]uint64, len(rows[i].Blocks))
			for j, id := range rows[i].Blocks {
				blocks[j] = id + a.round<<32
			}
			rows[i].Blocks = blocks
		}
	}
	return len(rows), nil
}
