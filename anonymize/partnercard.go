package anonymize

import (
	"fmt"

	"reprise/trace"
)

// A PartnerCard says by what a release to a partner was made.
type PartnerCard struct {
	KShare          int     `json:"k_share"`
	KClass          int     `json:"k_class"`
	LinkK           int     `json:"k_link"` // 1: every link was kept
	DropOwn         bool    `json:"own_blocks_dropped,omitempty"`
	PerOctave       int     `json:"length_buckets_per_octave"`
	QuantumNS       int64   `json:"time_quantum_ns"`
	Unit            string  `json:"counted_as_user"`           // the field: user, session or request
	Coverage        float64 `json:"requests_that_name_one"`    // share; the others count as one together
	Classes         int     `json:"classes"`                   // pairs of lengths
	MergedShare     float64 `json:"merged_requests_share"`     // of the requests: out with lengths of another class
	SuppressedShare float64 `json:"suppressed_requests_share"` // of the requests: left out

	// LinksKept is of the turns that follow another one in a session of the source:
	// how many still do. Nil where none did.
	LinksKept *float64 `json:"links_kept_share,omitempty"`
	// OwnBlocks is of the released requests: how many share a block that few have
	// with an earlier one of the same unit, and so are linked to that. OwnBlocksLeast
	// says that they may be more.
	OwnBlocks      float64 `json:"requests_linked_by_own_blocks_share"`
	OwnBlocksLeast bool    `json:"requests_linked_by_own_blocks_at_least,omitempty"`

	// Joined is of the released requests: how many share blocks with an earlier one
	// so that a session is inferred of them, by the rule of profile.SessionRule. Nil
	// where the source has sessions, and where DropOwn leaves none to infer.
	Joined *float64 `json:"requests_joined_by_blocks_share,omitempty"`
}

// A Change is what a release did to a trace.
type Change struct {
	Before, After Reuse
	CutBlocks     int64 // blocks of prompts that a shorter length cost
}

// Input is the change of all input tokens, as a share of those before.
func (c *Change) Input() float64 {
	return shareOf(c.After.InputTokens-c.Before.InputTokens, c.Before.InputTokens)
}

// Output is that of the output tokens.
func (c *Change) Output() float64 {
	return shareOf(c.After.OutputTokens-c.Before.OutputTokens, c.Before.OutputTokens)
}

func shareOf(n, of int64) float64 { return float64(n) / float64(max(of, 1)) }

// card describes a release.
func (r *release) card(t *transformer, after *countingWriter, totals Totals) Card {
	s, m, p := &r.counts, &r.merging, r.p
	pc := &PartnerCard{KShare: p.KShare, KClass: p.KClass, LinkK: p.LinkK, DropOwn: p.DropOwn, PerOctave: p.PerOctave, QuantumNS: int64(p.Quantum), Unit: p.Unit,
		Coverage: shareOf(s.withUnit, s.rows), Classes: m.classes, MergedShare: shareOf(m.merged, s.rows), SuppressedShare: shareOf(m.suppressed, s.rows),
		LinksKept: r.links.kept(), OwnBlocks: shareOf(t.own.linked, after.Requests), OwnBlocksLeast: t.own.least}
	if !r.sourced() && !p.dropsOwn() {
		pc.Joined = trace.Ptr(shareOf(after.later, after.Requests))
	}
	c := Card{
		Schema: CardSchema, Tier: Partner, Unit: p.Unit, BlockSize: r.src.Meta.BlockSize, Tokenizer: r.src.Meta.Tokenizer, Template: r.src.Meta.Template,
		Key:     "ephemeral, held in memory, dropped at the end; ids were renumbered and do not depend on it",
		Time:    fmt.Sprintf("drawn anew within bins of %s, %s", seconds(p.Quantum), countedFrom(r.src.Meta.Capture)),
		Lengths: fmt.Sprintf("in buckets, %d an octave, whose edges ⌈2^(i/%d)⌉ depend on no data; the middle stands for all in a bucket", p.PerOctave, p.PerOctave),
		Columns: rulesOf(Partner, p), WP29: partnerWP29(p, r.sourced()), Partner: pc, Totals: totals, Confined: p.Confined, Change: &Change{r.before, after.Reuse, t.cut},
	}
	c.Dropped, c.Risks = droppedOf(c.Columns), partnerRisks(p, pc)
	if of, err := ParseCard(r.src.Meta.Card, r.src.Meta.CardHash); err == nil {
		c.SourceFields = of.SourceFields
	}
	return c
}

// Meta describes the released trace of one with meta: what it says of its source
// is kept where it holds no more than a format, and of a declared capture its
// length alone.
func (c Card) Meta(of trace.Meta) (m trace.Meta, err error) {
	m = trace.Meta{BlockSize: of.BlockSize, Convention: of.Convention, Tokenizer: of.Tokenizer, Template: of.Template,
		SourceFormat: of.SourceFormat, Timing: of.Timing, Capture: of.Capture.Undated(), Sessions: of.Sessions, Tier: c.Tier, Unit: c.Unit}
	if m.Sessions == "inferred" && !c.Totals.InferredSessions {
		m.Sessions = ""
	}
	m.Card, m.CardHash, err = c.JSON()
	return m, err
}

// partnerWP29 are the three answers for a release to a partner.
func partnerWP29(p *PartnerPolicy, sourced bool) WP29 {
	w := WP29{
		SinglingOut: fmt.Sprintf("By a pair of lengths or by a name, no: %d or more have it. By what is known beside, such as the minute of a request, possibly.", p.KClass),
		Linkability: linkability(p, sourced) + reuseLinks(p) + " Nothing names whose they are.",
		Inference:   "Of what most of a class have in common, yes: k-anonymity does not keep that from being learnt.",
	}
	if p.Unit == UnitRequest {
		w.SinglingOut = "Of a person, possible: every request was counted as a person of its own."
		w.Linkability = linkability(p, sourced)
	}
	return w
}

func reuseLinks(p *PartnerPolicy) string {
	if p.DropOwn {
		return ""
	}
	return " Reuse within one " + p.Unit + " links its requests."
}

// linkability says which requests of a session can be told to be of one.
func linkability(p *PartnerPolicy, sourced bool) string {
	switch {
	case !sourced && p.dropsOwn():
		return fmt.Sprintf("Requests have no sessions, and share a block only where %d or more %s have it.", p.KShare, p.sharers())
	case !sourced:
		return "Requests that share blocks can be told to be of one conversation, and a few lengths of it may single it out."
	case p.LinkK < 2:
		return "All turns of a session stay linked, and a few lengths of a conversation may single it out."
	}
	return fmt.Sprintf("Turns of a session stay linked where %d or more have sessions of the same lengths; with pauses or times beside them they may be fewer.", p.LinkK)
}

// sharers are those whom k_share counts.
func (p *PartnerPolicy) sharers() string {
	if p.DropOwn && p.Unit == UnitRequest {
		return "sessions, inferred ones too,"
	}
	return p.Unit + "s"
}

// partnerRisks are what is left, in words.
func partnerRisks(p *PartnerPolicy, pc *PartnerCard) []string {
	who := p.Unit
	risks := []string{
		fmt.Sprintf("No pair of lengths has fewer than %d of a %s's peers. What is known of somebody beside lengths, such as the minute of a request, may still single requests out.", p.KClass, who),
		fmt.Sprintf("Block ids that fewer than %d have tell nothing across them. Several accounts of one person count as several: whoever holds s accounts and guesses at prompts needs k_share of s+2 to be kept out.", p.KShare),
		"Two releases of one source may be joined: what each hides, both together may show.",
	}
	if pc.OwnBlocks > 0 {
		least := ""
		if pc.OwnBlocksLeast {
			least = "at least "
		}
		risks = append(risks, fmt.Sprintf("%s%.1f %% of the requests share a block that few have with an earlier request of the same %s, and are linked to it by that whatever their sessions say: the reuse within one %s is kept.", least, 100*pc.OwnBlocks, who, who))
	}
	if pc.Joined != nil && *pc.Joined > 0 {
		sharers := PartnerPolicy{Unit: who, DropOwn: true}
		risks = append(risks, fmt.Sprintf("%.1f %% of the requests share blocks with an earlier one, so that anybody can infer which are of one conversation: a few lengths that are known of it may single it out. With --drop-own-blocks a block links requests only where %d or more %s have it.", 100**pc.Joined, p.KShare, sharers.sharers()))
	}
	if pc.Coverage < 1 {
		risks = append(risks, fmt.Sprintf("%.1f %% of the requests name no %s and were counted as one together.", 100*(1-pc.Coverage), who))
	}
	switch who {
	case UnitRequest:
		risks = append([]string{"EVERY REQUEST WAS COUNTED AS A PERSON OF ITS OWN, since the source names nobody. One person's requests may be all there is behind a class, a name or a block: this does not protect people."}, risks...)
	case UnitSession:
		risks = append(risks, "Sessions were counted, since the source names no users: one person with many sessions counts as many.")
	}
	return risks
}
