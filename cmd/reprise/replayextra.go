package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/synth/prompt"
	"reprise/trace"
)

// checkExtras refuses what would read the file of --row-extra more than once.
func (f *replayFlags) checkExtras() error {
	switch {
	case f.rowExtra == "":
	case f.loop != "", f.cache == replay.CacheWarm:
		return usagef("--row-extra is read once: it cannot be had with --loop or --cache warm")
	}
	return nil
}

// openRowExtra reads the file of --row-extra to its end, so that its faults are known
// before anything is sent, and opens it again. It is nil without one.
func (f *targetFlags) openRowExtra(cmd *cobra.Command, rows int64) (extras replay.RowExtras, close func() error, err error) {
	close = func() error { return nil }
	if f.rowExtra == "" {
		return nil, close, nil
	}
	file, err := os.Open(f.rowExtra)
	if err != nil {
		return nil, close, err
	}
	lines, err := replay.CheckExtras(file, f.rowExtra, rows)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, close, err
	}
	notef(cmd, "row extras: %d rows have headers or fields of their own", lines)
	return replay.NewExtraFile(file, f.rowExtra), file.Close, nil
}

// A rowPrompter makes prompts, and says how many tokens of a corpus it had to fill.
type rowPrompter interface {
	replay.Prompter
	Blocks() uint64
	Filled() int64
	ShortTails() int64
}

// byKind are Prompters for the APIs that rows go to, whose templates differ.
type byKind map[string]*prompt.Prompter

func (b byKind) of(row *trace.Request) *prompt.Prompter { return b[replay.KindAPI(row.Kind)] }

func (b byKind) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	return b.of(row).Prompt(row, buf)
}

func (b byKind) Tokens(row *trace.Request, buf []uint32) ([]uint32, error) {
	return b.of(row).Tokens(row, buf)
}

// Blocks is how many blocks all of them can tell apart.
func (b byKind) Blocks() uint64 {
	n := uint64(math.MaxUint64)
	for _, p := range b {
		n = min(n, p.Blocks())
	}
	return n
}

func (b byKind) Filled() (n int64) {
	for _, p := range b {
		n += p.Filled()
	}
	return n
}

func (b byKind) ShortTails() (n int64) {
	for _, p := range b {
		n += p.ShortTails()
	}
	return n
}

// forAPIs makes the Prompter for APIs with templates of so many tokens.
func (m *promptMaker) forAPIs(overheads map[string]int) (rowPrompter, error) {
	all, lengths := byKind{}, map[int]bool{}
	for api, overhead := range overheads {
		p, err := m.prompter(overhead)
		if err != nil {
			return nil, err
		}
		all[api], lengths[overhead] = p, true
	}
	if len(lengths) == 1 {
		for _, p := range all {
			return p, nil
		}
	}
	return all, nil
}

// A kindRow is the column that says which API a row goes to.
type kindRow struct {
	trace.Row `parquet:"-"`
	Kind      string `parquet:"kind,optional,dict"`
}

// apis are those that the rows of a workload go to.
func (f *targetFlags) apis(w *trace.Trace) ([]string, error) {
	if f.api != replay.APIAuto {
		return []string{f.api}, nil
	}
	rows, err := trace.Columns[kindRow](w)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	err = trace.Each(rows, func(_ int64, r *kindRow) error {
		found[replay.KindAPI(r.Kind)] = true
		return nil
	})
	return slices.Sorted(maps.Keys(found)), err
}

// determinism asks the endpoint again, when the run is over.
func (f *replayFlags) determinism(cmd *cobra.Command, w *trace.Trace, e *replay.HTTP, p replay.Prompter) func(context.Context, *replay.Run) error {
	if f.checkSame == 0 {
		return nil
	}
	return func(ctx context.Context, run *replay.Run) error {
		rows, _, err := workloadRows(w)
		if err != nil {
			return err
		}
		d, err := e.CheckDeterminism(ctx, rows, rows.total, p, f.checkSame)
		if err != nil {
			return fmt.Errorf("--check-deterministic: %w", err)
		}
		run.Determinism = &d
		notef(cmd, "determinism: %d of %d answers differ when asked twice at temperature 0", d.Differed, d.Compared)
		return nil
	}
}
