package anonymize

import (
	"fmt"

	"reprise/anonymize/dp"
	"reprise/trace"
	"reprise/trace/breaker"
)

func newCard(p *Policy, t Totals) Card {
	c := Card{
		Schema: CardSchema, Tier: p.Tier, Unit: "none: every record is one request and stays in the file",
		Key:       "ephemeral, held in memory, dropped at the end; ids were renumbered and do not depend on it",
		BlockSize: p.blockSize(), Time: "exact, " + countedFrom(p.Capture), Lengths: "exact", Columns: rulesOf(p.Tier, nil),
		WP29: WP29{
			SinglingOut: "Possible: exact lengths and times are those of one request most of the time.",
			Linkability: "Possible: users and sessions keep a number each, and logs of the same traffic can be joined by times and lengths.",
			Inference:   "Possible: lengths and reuse tell of what kind a request was, and shared blocks who sent the same.",
		},
		Risks: []string{
			"Pseudonymous, not anonymous: exact lengths and times single out most records for anybody who saw some of the traffic.",
			"Equal block ids show which requests share a prefix; somebody who could place prompts of their own in the traffic may test guesses.",
			"For use inside the organisation that the traffic came from.",
		},
		Totals: t, Confined: p.Confined,
	}
	c.Dropped = droppedOf(c.Columns)
	if t.InputGaps.Total()+t.OutputGaps.Total() > 0 {
		c.Lengths = "exact; as the source counts them where its text is redacted, empty or not all that was sent"
	}
	if t.Texts > 0 && p.Tokenizer != nil { // else the rows were recorded earlier
		c.Tokenizer, c.Template = p.Tokenizer.Name(), p.Template.Name
		c.Risks = append(c.Risks, fmt.Sprintf("The metadata tell where near-identical prompts part: positions, lengths and counts, of at least %d requests each.", breaker.MinRequests))
	}
	return c
}

// countedFrom says what arrival 0 is.
func countedFrom(c trace.Capture) string {
	if c.Declared() {
		return "relative to the declared begin of the capture"
	}
	return "relative to the first arrival, which is one request's"
}

// card describes a release.
func (r *release) card(t *transformer, after *countingWriter, totals Totals) Card {
	s, m, p := &r.counts, &r.merging, r.p
	pc := &PartnerCard{KShare: p.KShare, KClass: p.KClass, LinkK: p.LinkK, DropOwn: p.DropOwn, PerOctave: p.PerOctave, QuantumNS: int64(p.Quantum), Unit: p.Unit,
		Coverage: shareOf(s.withUnit, s.rows), Classes: m.classes, MergedShare: shareOf(m.merged, s.rows), SuppressedShare: shareOf(m.suppressed, s.rows),
		LinksKept: r.links.kept(), OwnBlocks: shareOf(t.own.linked, after.Requests), OwnBlocksLeast: t.own.least}
	if !r.sourced() && !p.dropsOwn() {
		pc.Joined = trace.Ptr(shareOf(after.later, after.Requests))
	}
	wp29 := WP29{
		SinglingOut: fmt.Sprintf("By a pair of lengths or by a name, no: %d or more have it. By what is known beside, such as the minute of a request, possibly.", p.KClass),
		Linkability: linkability(p, r.sourced()),
		Inference:   "Of what most of a class have in common, yes: k-anonymity does not keep that from being learnt.",
	}
	if p.Unit == UnitRequest {
		wp29.SinglingOut = "Of a person, possible: every request was counted as a person of its own."
	} else {
		if !p.DropOwn {
			wp29.Linkability += " Reuse within one " + p.Unit + " links its requests."
		}
		wp29.Linkability += " Nothing names whose they are."
	}
	c := Card{
		Schema: CardSchema, Tier: Partner, Unit: p.Unit, BlockSize: r.src.Meta.BlockSize, Tokenizer: r.src.Meta.Tokenizer, Template: r.src.Meta.Template,
		Key:     "ephemeral, held in memory, dropped at the end; ids were renumbered and do not depend on it",
		Time:    fmt.Sprintf("drawn anew within bins of %s, %s", seconds(p.Quantum), countedFrom(r.src.Meta.Capture)),
		Lengths: fmt.Sprintf("in buckets, %d an octave, whose edges ⌈2^(i/%d)⌉ depend on no data; the middle stands for all in a bucket", p.PerOctave, p.PerOctave),
		Columns: rulesOf(Partner, p), WP29: wp29, Partner: pc, Totals: totals, Confined: p.Confined, Change: &Change{r.before, after.Reuse, t.cut},
	}
	c.Dropped, c.Risks = droppedOf(c.Columns), partnerRisks(p, pc)
	if of, err := ParseCard(r.src.Meta.Card, r.src.Meta.CardHash); err == nil {
		c.SourceFields = of.SourceFields
	}
	return c
}

// Meta describes the released trace of one with meta: what it says about its source
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

// linkability says which requests of a session an attacker can link.
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

// weak is the ε above which a guarantee is more of a formality.
const weak = 4

// PublicCard is the card of tier public, of a model and of the rows that are
// drawn from it. of describes the model: its block size and tokenizer.
func PublicCard(s dp.Statement, of trace.Meta) Card {
	epsilon := s.Budget.Epsilon // with all releases of the source
	if s.Ledger != nil {
		epsilon = s.Ledger.Epsilon
	}
	risks := []string{
		fmt.Sprintf("The guarantee is for one %s. Several together, such as all users of one company, are protected less: k of them by k times ε.", s.Unit),
		"Every release of the same traffic adds to what can be learnt. The ledger adds up those that it knows; the same log imported in another way, or released by other means, it cannot know.",
		"What is listed as public is not protected. Who holds it for secret must not publish this.",
	}
	switch s.Unit {
	case UnitRequest:
		risks = append([]string{"ONE REQUEST IS PROTECTED, NOT A PERSON, since the source names nobody: of somebody with n requests n times as much may show."}, risks...)
	case UnitSession:
		risks = append(risks, "Sessions are protected, since the source names no users: of somebody with n sessions n times as much may show.")
	default:
		risks = append(risks, "Requests that name no user are protected as those of one user together; a person with several accounts is protected less.")
	}
	if epsilon > weak {
		risks = append([]string{fmt.Sprintf("ε = %.3g PROTECTS LITTLE: 1 is usual, and above %d the guarantee hardly says anything of a single %s.", epsilon, weak, s.Unit)}, risks...)
	}
	if s.Ledger != nil && s.Ledger.Epsilon > s.Budget.Epsilon {
		risks = append(risks, fmt.Sprintf("This is not the only release: with those before, and refused attempts, ε is %.3g.", s.Ledger.Epsilon))
	}
	inference := fmt.Sprintf("Hardly: whatever is concluded from this file would be concluded about as well without any one %s. What holds of all of them can be learnt, as it is meant to.", s.Unit)
	if epsilon > weak {
		inference = fmt.Sprintf("To some degree: at ε = %.3g what one %s adds to the counts may show.", epsilon, s.Unit)
	}
	c := Card{
		Schema: CardSchema, Tier: Public, Unit: s.Unit, BlockSize: of.BlockSize, Tokenizer: of.Tokenizer, Template: of.Template,
		Key:  "none: no id of the source is here; blocks of the rows are counted up as they are generated",
		Time: "synthetic: within periods, by noisy counts, that divide the declared capture window; the first arrival of the rows is 0",
		Lengths: fmt.Sprintf("synthetic: within cells of a quarter of an octave up to %d input and %d output tokens, whose edges depend on no data",
			s.MaxInput, s.MaxOutput),
		Columns: rulesOf(Public, nil), Public: &s,
		WP29: WP29{
			SinglingOut: "No: no record of the source is here, and each row is made up.",
			Linkability: "No: rows belong to nobody, and sessions are made up.",
			Inference:   inference,
		},
		Risks: risks,
	}
	c.Dropped = droppedOf(c.Columns)
	return c
}
