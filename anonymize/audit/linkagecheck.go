package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

// What a release to a partner must hold.
const (
	leastClass   = 11   // of a release that does not say; 1/11 is the risk of 9 % that regulators of clinical data accept (EMA policy 0070)
	mostUnicity4 = 0.05 // of sessions of which 4 requests are known, or fewer
)

// linkage looks how far requests and sessions hide among others. Of a release to
// a partner it asks that no pair of lengths is rare and that few sessions are
// singled out by requests of theirs; of other tiers it reports.
func linkage(ctx context.Context, c *Case) Finding {
	o := c.Output
	if o.Tier() == tierPublic {
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
	rows, err := traceRows(o.Trace), error(nil)
	if partner != nil && !dropsOwn(partner) && !sourced {
		rows, err = joinedRows(ctx, o.Trace)
	}
	var after Linkage
	if err == nil {
		after, err = measureLinkage(ctx, rows, opts)
	}
	if err != nil {
		return broken(err)
	}
	fig := Figures{"sets": lines[SetRisk](after.Sets), "points": lines[PointRisk](after.Points), "columns": lines[ColumnRisk](after.Columns)}
	if c.Internal != nil || c.Log != nil {
		src, err := c.Before(ctx)
		if err != nil {
			return broken(err)
		}
		before, err := measureLinkage(ctx, requestRows(src), opts)
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

const tierPublic = "public"

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
func judgeLinkage(l Linkage, fig Figures, k int, remedy string) Finding {
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

// words are the figures that matter most, in a sentence.
func (l *Linkage) words() string {
	s := fmt.Sprintf("by input and output tokens %.2f %% of the requests are unique, and the rarest pair has %d", 100*l.Sets[0].Unique, l.Sets[0].Smallest)
	if p := l.point(lengthsKnown, mostPoints); p != nil {
		s += fmt.Sprintf("; the lengths of %d requests single out %.1f %% of the sessions that have so many", p.Points, 100*p.Unique)
	}
	return s
}

// point is the risk by so many points.
func (l *Linkage) point(known string, points int) *PointRisk {
	for i := range l.Points {
		if p := &l.Points[i]; p.Known == known && p.Points == points {
			return p
		}
	}
	return nil
}

// String is a line for people, who find the rest in the JSON.
func (l Linkage) String() string { return l.words() }

// String is a line for people.
func (s SetRisk) String() string {
	return fmt.Sprintf("by %s: %.2f %% of %d %s unique, %.2f %% in classes below %d, smallest class %d, risk at most %.3g, on average %.3g",
		s.Known, 100*s.Unique, s.N, s.Of, 100*s.BelowK, s.K, s.Smallest, s.MaxRisk, s.Average)
}

// String is a line for people.
func (c ColumnRisk) String() string {
	if c.Column == "" {
		return fmt.Sprintf("all columns: %.2f %% unique", 100*c.Unique)
	}
	return fmt.Sprintf("without %s: %.2f %%", c.Column, 100*c.Unique)
}

// requestRows reads whole rows for what matters here.
func requestRows(src anonymize.Source) func() (trace.Reader[linkRow], error) {
	return func() (trace.Reader[linkRow], error) {
		rows, err := src.Open()
		return &linkReader{src: rows}, err
	}
}

type linkReader struct {
	src    trace.Reader[trace.Request]
	batch  []trace.Request
	joiner *joiner // of sessions; nil for those that rows have
}

// Read implements [trace.Reader].
func (r *linkReader) Read(rows []linkRow) (int, error) {
	if len(r.batch) < len(rows) {
		r.batch = make([]trace.Request, len(rows))
	}
	n, err := r.src.Read(r.batch[:len(rows)])
	for i := range n {
		q := &r.batch[i]
		rows[i] = linkRow{ArrivalNS: q.ArrivalNS, Session: q.Session, Turn: q.Turn, ThinkNS: q.ThinkNS, Model: q.Model, Class: q.Class,
			Category: q.Category, InputTokens: q.InputTokens, OutputTokens: q.OutputTokens}
		if r.joiner != nil {
			rows[i].Session = r.joiner.session(q.Blocks)
		}
	}
	return n, err
}

// lines are figures that are printed one below the other.
type lines[T fmt.Stringer] []T

func (l lines[T]) String() string {
	var b strings.Builder
	for _, v := range l {
		fmt.Fprintf(&b, "\n%36s%s", "", v.String())
	}
	return b.String()
}
