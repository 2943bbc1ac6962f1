package release

import (
	"context"
	"encoding/json"
	"fmt"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// A Measured is all that a model keeps of a trace: what noisy counts chose, and tables with noise.
type Measured struct {
	Chosen string // which cells there are, as noisy counts say
	Tables []NoisyTable
}

// A NoisyTable is a table with its noise, and how much that is.
type NoisyTable struct {
	Spec  dp.NoiseSpec
	Cells []int64
}

// A Rehearsal measures a trace as often as it is asked to, where [Fit] does so once.
// The membership game is played with it.
type Rehearsal struct{ fit *fit }

// Rehearse reads a trace as [Fit] does.
func Rehearse(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta, o Options) (*Rehearsal, error) {
	if err := o.defaults(meta); err != nil {
		return nil, err
	}
	f := newFit(meta, o)
	if err := f.plan(); err != nil {
		return nil, err
	}
	return &Rehearsal{f}, f.source.read(ctx, src, o.Progress)
}

// chosen is what noise chooses of the cells.
type chosen struct {
	Rate     int         `json:"rate_cells"`
	Sums     int64       `json:"later_tokens"` // limit
	Selected [][2]uint64 `json:"trunks"`       // block and level
}

// Measure selects, counts and draws all noise anew, by the code of [Fit].
func (r *Rehearsal) Measure() (m Measured, err error) {
	f := r.fit
	f.trunks, f.noisy, f.sums = nil, [tables][]int64{}, f.mostSummed()
	if err := f.measure(); err != nil {
		return m, err
	}
	c := chosen{Rate: f.rate, Sums: f.sums}
	for _, k := range f.selected {
		c.Selected = append(c.Selected, [2]uint64{k.block, uint64(k.level)})
	}
	b, err := json.Marshal(c)
	m.Chosen = string(b)
	for t, cells := range f.noisy {
		if cells != nil {
			m.Tables = append(m.Tables, NoisyTable{Spec: f.specs[t], Cells: cells})
		}
	}
	return m, err
}

// Exact counts without noise, in the cells that a measurement chose.
func (r *Rehearsal) Exact(cells string) (out [][]int64, err error) {
	var c chosen
	if err := json.Unmarshal([]byte(cells), &c); err != nil {
		return nil, fmt.Errorf("the cells of a measurement: %w", err)
	}
	f := r.fit
	var selected []node
	for _, k := range c.Selected {
		selected = append(selected, node{k[0], int(k[1])})
	}
	f.rate, f.sums = c.Rate, c.Sums
	f.takeTrunks(selected)
	units, _, err := f.source.votes()
	if err != nil {
		return nil, err
	}
	for t := range tables {
		rows, columns := f.shape(t)
		f.noisy[t] = nil
		if rows > 0 {
			f.noisy[t] = make([]int64, rows*columns)
		}
	}
	f.noisy[ofSessions][0] = unit * units
	if err := f.count(); err != nil {
		return nil, err
	}
	for _, cells := range f.noisy {
		if cells != nil {
			out = append(out, cells)
		}
	}
	f.noisy = [tables][]int64{}
	return out, nil
}
