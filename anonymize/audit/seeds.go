package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"

	"reprise/anonymize"
	"reprise/trace"
)

// seeds has two processes make a model of one invented trace. Whoever knows the noise
// takes it off: where both draw the same, it is known.
func seeds(ctx context.Context, c *Case) Finding {
	tier := c.Output.Tier()
	switch {
	case !c.Output.drawn():
		return c.notDrawn("it is about releases with noise, and the output is none")
	case c.Fit == nil:
		return skipped("it needs the program as a process of its own")
	}
	dir, err := os.MkdirTemp(c.SpillDir, "reprise-audit-")
	if err != nil {
		return broken(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "invented.parquet")
	if err := trace.Create(path, invented); err != nil {
		return broken(err)
	}
	var sides [2]map[string]int
	for i := range sides {
		model, err := c.Fit(ctx, path, tier)
		if err == nil {
			sides[i], err = cellsOf(model)
		}
		if err != nil {
			return broken(fmt.Errorf("a model of an invented trace: %w", err))
		}
	}
	same, all := 0, 0
	for row, n := range sides[0] {
		all, same = all+n, same+min(n, sides[1][row])
	}
	fig := Figures{"cells": all, "cells_alike": same}
	if float64(same) > mostAlike*float64(all) {
		return failed(fig, "two processes drew the same noise for %d of %d cells of an invented trace: whoever draws it too can take it off", same, all)
	}
	return passed(fig, "two processes drew other noise for one invented trace: %d of %d cells are alike, by chance", same, all)
}

// mostAlike is how many of the cells of two models may be alike by chance.
const mostAlike = 0.5

// Invented users and their requests.
const (
	inventedUsers = 10_000
	inventedTurns = 2
)

// invented writes a trace that is large enough for a release, the same each time.
func invented(dst trace.Writer[trace.Request]) (trace.Meta, error) {
	meta := trace.Meta{Tier: anonymize.Internal, Capture: trace.RelativeCapture(0, time.Hour), Sessions: "source"}
	meta.Captures = "invented"
	rng := rand.New(rand.NewPCG(1, 1))
	over := func(octaves int) int32 { // from 64 on, each octave as often
		return int32(64 * math.Pow(2, float64(octaves)*rng.Float64()))
	}
	for i := range inventedUsers * inventedTurns {
		user := int64(i % inventedUsers)
		r := trace.Request{ArrivalNS: int64(i) * int64(time.Hour) / (inventedUsers * inventedTurns), InputTokens: over(5), OutputTokens: trace.Ptr(over(3)),
			User: &user, Session: &user, Status: trace.StatusOK}
		if _, err := dst.Write([]trace.Request{r}); err != nil {
			return meta, err
		}
	}
	return meta, nil
}

// cellsOf are the rows of a model, as text, and how often each occurs.
func cellsOf(model []byte) (map[string]int, error) {
	f, err := parquet.OpenFile(bytes.NewReader(model), int64(len(model)))
	if err != nil {
		return nil, err
	}
	cells, batch := map[string]int{}, make([]parquet.Row, 256)
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		for {
			n, err := rows.ReadRows(batch)
			for _, row := range batch[:n] {
				cells[fmt.Sprint(row)]++
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, errors.Join(err, rows.Close())
			}
		}
		if err := rows.Close(); err != nil {
			return nil, err
		}
	}
	if len(cells) == 0 {
		return nil, errors.New("it has no cells")
	}
	return cells, nil
}
