package audit

import (
	"context"

	"reprise/anonymize"
	"reprise/trace"
)

// dropsOwn tells whether a card claims that blocks of few are gone; with k_share of
// 1 there are none.
func dropsOwn(card *anonymize.PartnerCard) bool { return card.DropOwn && card.KShare > 1 }

// ownBlocks holds a release that claims to have dropped the blocks of few against
// its source, where they would link requests though no session says so. Each of
// its blocks that two requests have is one that k_share of the source have, so
// there are no more of them than of those; it returns how many there are beyond.
// Who counts is said here once more, and not asked of the code that is judged.
func (c *Case) ownBlocks(ctx context.Context, card *anonymize.PartnerCard) (int64, error) {
	src, err := c.Before(ctx)
	if err != nil {
		return 0, err
	}
	allowed, err := anonymize.CountShared(ctx, src, card.KShare, func(_ int64, r *trace.Request) uint64 {
		id := r.User
		if card.Unit != anonymize.UnitUser {
			id = r.Session // of requests too: a conversation of many is one
		}
		switch {
		case id != nil:
			return uint64(*id) + 1
		case card.Unit == anonymize.UnitRequest:
			return anonymize.Nobody
		}
		return 0 // together they are one
	})
	if err != nil {
		return 0, err
	}
	link, err := anonymize.CountShared(ctx, sourceOf(c.Output.Trace), 2, func(row int64, _ *trace.Request) uint64 { return uint64(row) })
	return max(link-allowed, 0), err
}
