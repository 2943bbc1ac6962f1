package doc

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// cdfMarks are the percentiles that a CDF marks, and how many values they take.
var cdfMarks = []struct {
	name   string
	share  float64
	values int64
}{{"p50", 0.5, 2}, {"p95", 0.95, 20}, {"p99", 0.99, 100}}

const (
	cdfLowest = 0.02 // share of the values that may lie left of the axis
	cdfFar    = 50   // times below the least median, where the axis begins at the latest
	cdfSteps  = 60   // values from which on steps look like a line
	cdfSpan   = 20   // times from the least to the greatest value, from which on an axis is logarithmic

	// So is one of this span on which the curves would rise within its first part.
	cdfSkewSpan, cdfSkew = 3, 0.25
)

// fitted returns a CDF as the line that is drawn: in percent, on an X axis that fits the
// values, with a mark at each percentile. values says what the percentiles are, and
// remarks what lies left of the axis. Other plots come back as they are.
func (p *Plot) fitted() (line Plot, values, remarks []string) {
	line = *p
	if p.Kind != CDF {
		return line, nil, nil
	}
	line.Kind, line.YUnit, line.Zero, line.LogX = Line, "%", true, false
	line.Series, line.Marks = nil, slices.Clone(p.Marks)
	if !slices.ContainsFunc(p.Series, func(s Series) bool { return len(s.X) > cdfSteps }) {
		line.Kind = Step
	}
	line.YLabel = cmp.Or(line.YLabel, "share of the values")
	least, median, most, bulk := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, s := range p.Series {
		if len(s.X) == 0 {
			continue
		}
		low := s.quantile(cdfLowest)
		if i := sort.Search(len(s.X), func(i int) bool { return s.X[i] > low/2 }); i < len(s.X) {
			// the least that is not far from it
			low = s.X[i]
		}
		least, median, most, bulk = min(least, low), min(median, s.quantile(0.5)), max(most, s.X[len(s.X)-1]),
			max(bulk, s.quantile(0.9))
	}
	from := math.Inf(-1)
	if median > 0 {
		from = max(least, median/cdfFar)
		line.LogX = most > from*cdfSpan || most > from*cdfSkewSpan && bulk-from < (most-from)*cdfSkew
	}
	if !line.LogX {
		from = math.Inf(-1)
	}
	for i, s := range p.Series {
		kept, left := s.from(from)
		if line.Kind == Step && left == 0 && len(kept.X) > 0 && most > least {
			// the foot of the first step; two points of one X would be one
			kept.X, kept.Y = slices.Insert(kept.X, 0, kept.X[0]-min((most-least)/1000, math.Abs(kept.X[0])/1000)),
				slices.Insert(kept.Y, 0, 0)
		}
		line.Series = append(line.Series, kept)
		if left >= 0.0005 {
			remarks = append(remarks, fmt.Sprintf("%s: %s of the values are below %s and lie left of the axis.", s.Name,
				Percent(left), withUnitText(Number(from), p.XUnit)))
		}
		if len(s.X) == 0 {
			continue
		}
		var says []string
		for _, m := range cdfMarks {
			if s.N == 0 || s.N >= m.values {
				says = append(says, m.name+" "+Number(s.quantile(m.share)))
			}
		}
		if len(says) == 0 {
			continue
		}
		name := ""
		if len(p.Series) > 1 {
			name = p.Series[i].Name + ": "
		}
		values = append(values, name+withUnitText(strings.Join(says, " · "), p.XUnit))
	}
	for _, i := range []int{0, 2, 1} { // the label of p95 gives way to that of p99
		line.Marks = append(line.Marks,
			Mark{Axis: AxisY, At: 100 * cdfMarks[i].share, Label: cdfMarks[i].name, margin: true})
	}
	return line, values, remarks
}

// quantile is the least X up to which the share of the values lies.
func (s *Series) quantile(share float64) float64 {
	i := sort.Search(len(s.Y), func(i int) bool { return s.Y[i] >= share-1e-9 })
	return s.X[min(i, len(s.X)-1)]
}

// from is the series in percent and from an X on, and the share of the values before.
func (s *Series) from(x float64) (kept Series, left float64) {
	kept = Series{Name: s.Name}
	for i := range s.X {
		if s.X[i] < x {
			left = s.Y[i]
			continue
		}
		if len(kept.X) == 0 && left > 0 && s.X[i] > x { // the curve comes from beyond the edge
			kept.X, kept.Y = append(kept.X, x), append(kept.Y, 100*left)
		}
		kept.X, kept.Y = append(kept.X, s.X[i]), append(kept.Y, 100*s.Y[i])
	}
	return kept, left
}

func withUnitText(text, unit string) string {
	if unit == "" {
		return text
	}
	return text + " " + unit
}
