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
// other: by the pairs of lengths, by the nearest rows, and, of sessions for a partner, by
// somebody who knows a few requests of a session. Of other outputs it reports how far
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
	if f.Status == Pass && o.drawn() {
		f = c.halves(ctx, src, fig)
	}
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

// halves plays the half test with the unit and the settings of the card.
func (c *Case) halves(ctx context.Context, src anonymize.Source, fig Figures) Finding {
	card, err := anonymize.ParseCard(c.Output.Meta["card"], c.Output.Meta["card_sha256"])
	if err != nil {
		return broken(err)
	}
	h, err := c.halfTest(ctx, src, drawnOptions(card.Sessions))
	if err != nil {
		return broken(err)
	}
	fig["half_test"] = h
	switch {
	case h.Sessions < leastTargets:
		return inconclusive(fig, "%d %ss in the source are too few to tell: it takes %d", h.Sessions,
			card.Sessions.Unit, leastTargets)
	case h.Found():
		return failed(fig, "%s: it can be told who was in the source", h)
	}
	return passed(fig, "%s", h)
}
