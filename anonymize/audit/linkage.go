package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

// What a release to a partner must hold.
const (
	leastClass   = 11   // of a release that does not say; 1/11 is the risk of 9 % that regulators of clinical data accept (EMA policy 0070)
	mostUnicity4 = 0.05 // of sessions, where at most 4 requests of each are known
)

// linkage looks how far requests and sessions hide among others. Of a release to
// a partner it asks that no pair of lengths is rare and that few sessions are
// singled out by requests of theirs; of other tiers it reports.
func linkage(ctx context.Context, c *Case) Finding {
	o := c.Output
	if o.Tier() == anonymize.Public {
		return publicLinkage(ctx, c)
	}
	opts := linkOptions{k: leastClass, seed: c.Seed}
	var partner *anonymize.PartnerCard
	if card, err := anonymize.ParseCard(o.Meta["card"], o.Meta["card_sha256"]); err == nil && card.Partner != nil {
		partner = card.Partner
		opts.k = partner.KClass
		opts.quantum = time.Duration(partner.QuantumNS)
	}
	sourced := o.Trace.Meta.Sessions == "source"
	var err error
	rows := func() (trace.Reader[linkRow], error) { return trace.Columns[linkRow](o.Trace) }
	if partner != nil && !dropsOwn(partner) && !sourced {
		rows, err = joinedRows(ctx, o.Trace)
	}
	var after linkageRisks
	if err == nil {
		after, err = measureLinkage(ctx, rows, opts)
	}
	if err != nil {
		return broken(err)
	}
	fig := Figures{"sets": lines[setRisk](after.Sets), "points": lines[pointRisk](after.Points), "columns": lines[columnRisk](after.Columns)}
	if c.Internal != nil || c.Log != nil {
		src, err := c.Before(ctx)
		if err != nil {
			return broken(err)
		}
		before, err := measureLinkage(ctx, func() (trace.Reader[linkRow], error) {
			rows, err := src.Open()
			return &linkReader{src: rows}, err
		}, opts)
		if err != nil {
			return broken(err)
		}
		fig["before"] = before
	}
	switch {
	case o.Tier() != anonymize.Partner:
		return passed(fig, "report only: tier %s claims no anonymity; %s", orNone(o.Tier()), after.words())
	case partner == nil, o.Trace.Meta.Seed != "":
		return passed(fig, "report only: it is made of a release, and no release itself; %s", after.words())
	}
	f := judgeLinkage(after, fig, opts.k, remedy(sourced))
	if f.Status == Pass && dropsOwn(partner) && (c.Internal != nil || c.Log != nil) {
		switch own, err := c.ownBlocks(ctx, partner); {
		case err != nil:
			return broken(err)
		case own > 0:
			return failed(fig, "blocks that few have link requests, and the card says that they were dropped: %d blocks or more", own)
		}
	}
	if opts.k < leastClass {
		f.Why += fmt.Sprintf("; its k_class of %d is below %d, which keeps the risk at 9 %%", opts.k, leastClass)
	}
	return f
}

// remedy says what leaves fewer links between requests: where sessions are not
// those of the source they were inferred from the blocks of the release, as
// anybody can.
func remedy(sourced bool) string {
	if sourced {
		return "anonymize with a higher --k-link cuts more links between turns"
	}
	return "the blocks that they share link them; anonymize --drop-own-blocks leaves only blocks that many have"
}

// judgeLinkage holds a release against the gates. The remedy is of sessions that
// are singled out.
func judgeLinkage(l linkageRisks, fig Figures, k int, remedy string) Finding {
	lengths := l.Sets[0]
	if lengths.Unique > 0 || lengths.N > 0 && lengths.Smallest < int64(k) {
		return failed(fig, "a pair of lengths has %d requests, want %d or more; %s", lengths.Smallest, k, l.words())
	}
	for _, p := range slices.Backward(l.Points) { // the most points first, by which most are singled out
		if p.Known == lengthsKnown && p.Unique > mostUnicity4 {
			return failed(fig, "the lengths of %d requests single out %.1f %% of the sessions that have so many, want %.0f %% at most: %s", p.Points, 100*p.Unique, 100*mostUnicity4, remedy)
		}
	}
	return passed(fig, "%s", l.words())
}

// dropsOwn tells whether a card claims that blocks of few are gone; with k_share of
// 1 there are none.
func dropsOwn(card *anonymize.PartnerCard) bool { return card.DropOwn && card.KShare > 1 }

// ownBlocks holds a release that claims to have dropped the blocks of few against
// its source, where they would link requests though no session says so. Each of
// its blocks that two requests have is one that k_share of the source have, so
// there are no more of them than of those; it returns how many there are beyond.
// Who counts is defined here a second time, so that the check does not rely on the code it judges.
func (c *Case) ownBlocks(ctx context.Context, card *anonymize.PartnerCard) (int64, error) {
	src, err := c.Before(ctx)
	if err != nil {
		return 0, err
	}
	allowed, err := anonymize.CountShared(ctx, src, card.KShare, func(_ int64, r *trace.Request) uint64 {
		id, of := r.User, uint64(1) // users and sessions are not mistaken for each other
		if card.Unit == anonymize.UnitSession || card.Unit == anonymize.UnitRequest && id == nil {
			id, of = r.Session, 2 // a conversation of many requests is one
		}
		switch {
		case id != nil:
			return 2*uint64(*id) + of
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
