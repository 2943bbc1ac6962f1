package audit

import (
	"context"
	"math"

	"reprise/anonymize"
	"reprise/trace"
)

// starts is how many of the first requests of the source are tried as the first of
// the release.
const starts = 16

// times looks whether instants of the source come out, to the nanosecond and but
// for the distance by which all are moved.
func times(ctx context.Context, c *Case) Finding {
	if c.Output.Tier() != anonymize.Partner {
		return skipped("it is of tier partner: tier internal keeps exact times, and says so")
	}
	src, err := c.Before(ctx)
	if err != nil {
		return broken(err)
	}
	exact := map[int64]bool{}
	var first []int64
	if src.Meta.Capture.Declared() {
		first = append(first, 0) // that of the release counts from the same begin
	}
	var span int64
	err = eachRow(ctx, src, func(row int64, r *trace.Request) error {
		exact[r.ArrivalNS] = true
		if row < starts {
			first = append(first, r.ArrivalNS)
		}
		span = r.ArrivalNS
		return nil
	})
	if err != nil {
		return broken(err)
	}
	rows, err := c.Output.Trace.Reader()
	if err != nil {
		return broken(err)
	}
	n := 0
	same := make([]int, len(first))
	err = eachRequest(ctx, rows, func(r *trace.Request) {
		if n++; r.ArrivalNS == 0 {
			return // the first is 0 in every trace without a declared capture
		}
		for i, from := range first {
			if exact[r.ArrivalNS+from] {
				same[i]++
			}
		}
	})
	if err != nil {
		return broken(err)
	}
	most := 0
	for _, s := range same {
		most = max(most, s)
	}
	// By chance each instant that comes out is one of the source with this share.
	chance := float64(len(exact)) / math.Max(float64(span), 1)
	fig := Figures{"rows": n, "instants_of_the_source": most, "expected_by_chance": chance * float64(n)}
	f := passed(fig, "instants of the source do not come out")
	switch limit := 3 + 10*chance*float64(n); {
	case n < 10:
		f = inconclusive(fig, "%d rows are too few to tell times by", n)
	case float64(most) > limit:
		f = failed(fig, "%d instants of %d are those of the source to the nanosecond", most, n)
	}
	return f
}
