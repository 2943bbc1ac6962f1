package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reprise/anonymize"
	"reprise/trace"
)

// linkage asks of what is drawn whether it lies nearer to its source than people do to each
// other: by the pairs of lengths, and by the nearest rows. Of other outputs it reports how far
// requests hide among others.
func linkage(ctx context.Context, c *Case) Finding {
	o := c.Output
	if o.Tier() != anonymize.Public && !o.drawn() {
		rows := func() (trace.Reader[linkRow], error) { return trace.Columns[linkRow](o.Trace) }
		l, err := measureLinkage(ctx, rows, linkOptions{k: leastClass, seed: c.Seed})
		if err != nil {
			return broken(err)
		}
		fig := Figures{"sets": l.Sets, "points": l.Points, "columns": l.Columns}
		return passed(fig, "report only: rows of tier %s claim no anonymity; %s", orNone(o.Tier()), l.words())
	}
	if c.Internal == nil && c.Log == nil {
		return skipped("drawn rows belong to no person: it needs the source log (--source) or a trace of tier " +
			"internal (--internal)")
	}
	src, err := c.Before(ctx)
	if err == nil && otherCapture(o.Meta["capture_ids"], src.Meta.Captures) {
		err = fmt.Errorf("the source is of another capture than the output")
	}
	if err != nil {
		return broken(err)
	}
	copies, err := copiedPairs(ctx, src, sourceOf(o.Trace))
	if err != nil {
		return broken(err)
	}
	fig := Figures{"copied_pairs": copies}
	if copies.Beyond() {
		return failed(fig, "%s: rows of the source come out", copies)
	}
	f := c.nearRows(ctx, src, fig)
	if f.Status == Pass {
		f.Why += "; " + copies.String()
	}
	return f
}

// otherCapture tells whether two lists of capture ids, separated by commas, have none in
// common. Where one is empty nothing tells.
func otherCapture(a, b string) bool {
	of := strings.Split(b, ",")
	return a != "" && b != "" &&
		!slices.ContainsFunc(strings.Split(a, ","), func(id string) bool { return slices.Contains(of, id) })
}
