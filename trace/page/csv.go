package page

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
)

// WriteCSV writes the points of the plot's series, every one of them, as lines
// of series, X and Y under a head with the labels and units of the axes. Bars
// with edges have both. A missing value is an empty field.
func (p *Plot) WriteCSV(w io.Writer) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("page: plot: %w", err)
	}
	edges := false
	for _, s := range p.Series {
		edges = edges || s.Hi != nil
	}
	x := titled(axis(p.XLabel, "X"), p.XUnit)
	head := []string{"series", x}
	if edges {
		head = []string{"series", x + " from", x + " to"}
	}
	out := csv.NewWriter(w)
	if err := out.Write(append(head, titled(axis(p.YLabel, "Y"), p.YUnit))); err != nil {
		return err
	}
	for _, s := range p.Series {
		for i := range s.X {
			line := []string{s.Name, field(s.X[i])}
			switch {
			case s.Hi != nil:
				line = append(line, field(s.Hi[i]))
			case edges:
				line = append(line, "")
			}
			if err := out.Write(append(line, field(s.Y[i]))); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func field(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
