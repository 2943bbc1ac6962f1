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
		Key:       keyEphemeral,
		BlockSize: p.blockSize(), Time: "exact, " + countedFrom(p.Capture), Lengths: "exact", Columns: rulesOf(p.Tier, nil),
		WP29: WP29{
			SinglingOut: "Possible: exact lengths and times identify most requests.",
			Linkability: "Possible: each user and session keeps one number, and other logs of the same traffic can be joined by times and lengths.",
			Inference:   "Possible: lengths and reuse show what kind of request it was, and shared blocks show who sent the same prompt.",
		},
		Risks: []string{
			"Pseudonymous, not anonymous: exact lengths and times single out most records for anybody who saw some of the traffic.",
			"Equal block ids show which requests share a prefix; someone who can put their own prompts into the traffic can test guesses.",
			"For use inside the organisation that the traffic came from.",
		},
		Totals: t, Confined: p.Confined,
	}
	c.Dropped = droppedOf(c.Columns)
	if t.InputGaps.Total()+t.OutputGaps.Total() > 0 {
		c.Lengths = "exact; the source's own counts where its text is redacted, empty or incomplete"
	}
	if t.Texts > 0 && p.Tokenizer != nil { // else the rows were recorded earlier
		c.Tokenizer, c.Template = p.Tokenizer.Name(), p.Template.Name
		c.Risks = append(c.Risks, breakersRisk)
	}
	return c
}

var breakersRisk = fmt.Sprintf("The metadata show where near-identical prompts diverge: positions, lengths and counts, of at least %d requests each.", breaker.MinRequests)

// countedFrom says what arrival 0 is.
func countedFrom(c trace.Capture) string {
	if c.Declared() {
		return "relative to the declared begin of the capture"
	}
	return "relative to the first arrival, which is that of one request"
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
		SinglingOut: fmt.Sprintf("Not by a pair of lengths or a name: at least %d share each. Possibly by other knowledge, such as the minute of a request.", p.KClass),
		Linkability: linkability(p, r.sourced()),
		Inference:   "Possible for what most of a class have in common: k-anonymity does not hide that.",
	}
	if p.Unit == UnitRequest {
		wp29.SinglingOut = "Possible for a person: every request was counted as a different person."
	} else {
		if !p.DropOwn {
			wp29.Linkability += " Reuse within one " + p.Unit + " links its requests."
		}
		wp29.Linkability += " Nothing names the person behind them."
	}
	c := Card{
		Schema: CardSchema, Tier: Partner, Unit: p.Unit, BlockSize: r.src.Meta.BlockSize, Tokenizer: r.src.Meta.Tokenizer, Template: r.src.Meta.Template,
		Key:     keyOf(r.src.Meta),
		Time:    fmt.Sprintf("drawn anew within bins of %s, %s", seconds(p.Quantum), countedFrom(r.src.Meta.Capture)),
		Lengths: fmt.Sprintf("in buckets, %d per octave, with edges ⌈2^(i/%d)⌉ that do not depend on the data; each length becomes the middle of its bucket", p.PerOctave, p.PerOctave),
		Columns: rulesOf(Partner, p), WP29: wp29, Partner: pc, Totals: totals, Confined: p.Confined, Change: &Change{r.before, after.Reuse, t.cut},
	}
	c.Dropped, c.Risks = droppedOf(c.Columns), append(partnerRisks(p, pc), keyRisks(r.src.Meta, true)...)
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
		SourceFormat: of.SourceFormat, Timing: of.Timing, Capture: of.Capture.Undated(), Captures: of.Captures,
		Sessions: of.Sessions, Tier: c.Tier, Unit: c.Unit}
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
		return fmt.Sprintf("Requests have no sessions, and share a block only if at least %d %s have it.", p.KShare, p.sharers())
	case !sourced:
		return "Requests that share blocks can be recognised as one conversation, and a few lengths of it may single it out."
	case p.LinkK < 2:
		return "All turns of a session stay linked, and a few lengths of a conversation may single it out."
	}
	return fmt.Sprintf("Turns of a session stay linked only where at least %d have sessions of the same lengths; together with pauses or times, fewer may match.", p.LinkK)
}

// sharers are those whom k_share counts.
func (p *PartnerPolicy) sharers() string {
	if p.DropOwn && p.Unit == UnitRequest {
		return "users or sessions, inferred ones too,"
	}
	return p.Unit + "s"
}

// partnerRisks are what is left, in words.
func partnerRisks(p *PartnerPolicy, pc *PartnerCard) []string {
	who := p.Unit
	risks := []string{
		fmt.Sprintf("Each pair of lengths is shared by at least %d %ss. Other knowledge about someone, such as the minute of a request, may still single requests out. Somebody with %d accounts who send a rare pair learns whether somebody else sent it.", p.KClass, who, p.KClass-1),
		fmt.Sprintf("A block that fewer than %d have links none of them. One person with several accounts counts as several: to stop someone who holds s accounts and guesses prompts, k_share must be at least s+2.", p.KShare),
		"Two releases of one source can be joined: together they may show what each one hides.",
	}
	if pc.OwnBlocks > 0 {
		least := ""
		if pc.OwnBlocksLeast {
			least = "at least "
		}
		risks = append(risks, fmt.Sprintf("%s%.1f %% of the requests share a rare block with an earlier request of the same %s, which links the two whatever their sessions say: reuse within one %s is kept.", least, 100*pc.OwnBlocks, who, who))
	}
	if pc.Joined != nil && *pc.Joined > 0 {
		sharers := PartnerPolicy{Unit: who, DropOwn: true}
		risks = append(risks, fmt.Sprintf("%.1f %% of the requests share blocks with an earlier one, so anyone can infer which belong to one conversation: a few known lengths of it may single it out. With --drop-own-blocks a block links requests only if at least %d %s have it.", 100**pc.Joined, p.KShare, sharers.sharers()))
	}
	if pc.Coverage < 1 {
		risks = append(risks, fmt.Sprintf("%.1f %% of the requests name no %s and were counted as one together.", 100*(1-pc.Coverage), who))
	}
	switch who {
	case UnitRequest:
		risks = append([]string{"EVERY REQUEST WAS COUNTED AS A DIFFERENT PERSON, since the source names nobody. All requests of a class, a name or a block may come from one person: this does not protect people. Blocks are counted by users or sessions where the source has them; where it has neither, one account that sends a guess k_share − 1 times learns whether somebody else sent it."}, risks...)
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
		fmt.Sprintf("The guarantee holds for one %s. A group, such as all users of one company, is protected less: k of them with k times ε.", s.Unit),
		"Every release of the same traffic adds to what can be learnt. The ledger adds up the releases it knows, and knows a log that was imported again by its arrivals or its capture window; it cannot know of one that was cut before, or released by other means.",
		"What is listed as public is not protected. If any of it is secret, do not publish this file.",
	}
	switch s.Unit {
	case UnitRequest:
		risks = append([]string{"ONE REQUEST IS PROTECTED, NOT A PERSON, since the source names nobody: the ε of someone with n requests is n times as large."}, risks...)
	case UnitSession:
		risks = append(risks, "Sessions are protected, since the source names no users: the ε of someone with n sessions is n times as large.")
	default:
		risks = append(risks, "Requests that name no user count as one user together; a person with several accounts is protected less.")
	}
	if epsilon > weak {
		risks = append([]string{fmt.Sprintf("ε = %.3g PROTECTS LITTLE: 1 is usual, and above %d the guarantee means little for a single %s.", epsilon, weak, s.Unit)}, risks...)
	}
	if s.Ledger != nil && s.Ledger.Epsilon > s.Budget.Epsilon {
		risks = append(risks, fmt.Sprintf("This is not the only release: with those before, and refused attempts, ε is %.3g.", s.Ledger.Epsilon))
	}
	inference := fmt.Sprintf("Hardly: what can be concluded from this file could be concluded about as well without any one %s. What holds for all of them can be learnt, as intended.", s.Unit)
	if epsilon > weak {
		inference = fmt.Sprintf("To some degree: at ε = %.3g the contribution of one %s to the counts may show.", epsilon, s.Unit)
	}
	c := Card{
		Schema: CardSchema, Tier: Public, Unit: s.Unit, BlockSize: of.BlockSize, Tokenizer: of.Tokenizer, Template: of.Template,
		Key:  "none: there is no id of the source; blocks of the rows are numbered as they are generated",
		Time: "synthetic: within periods, by noisy counts, that divide the declared capture window; the first arrival of the rows is 0",
		Lengths: fmt.Sprintf("synthetic: within cells of a quarter of an octave up to %d input and %d output tokens, whose edges do not depend on the data",
			s.MaxInput, s.MaxOutput),
		Columns: rulesOf(Public, nil), Public: &s,
		WP29: WP29{
			SinglingOut: "No: there is no record of the source, and each row is synthetic.",
			Linkability: "No: rows belong to nobody, and sessions are synthetic.",
			Inference:   inference,
		},
		Risks: risks,
	}
	c.Dropped = droppedOf(c.Columns)
	return c
}

// SessionsCard is the card of tier partner of a model of sessions, and of the rows that are
// drawn from it. of describes the model.
func SessionsCard(s dp.SessionStatement, of trace.Meta) Card {
	epsilon := s.Budget.Epsilon // with all releases of the source
	if s.Ledger != nil {
		epsilon = max(epsilon, s.Ledger.Epsilon)
	}
	risks := []string{
		fmt.Sprintf("The guarantee holds for one %s. A group is protected less: k of them with k times ε.", s.Unit),
		"Every release of the same traffic adds to what can be learnt. The ledger adds up the releases it knows.",
		"What is listed as public is not protected.",
	}
	switch s.Unit {
	case UnitRequest:
		risks = append([]string{"ONE REQUEST IS PROTECTED, NOT A PERSON: the ε of someone with n requests is n times as large."}, risks...)
	case UnitSession:
		risks = append(risks, "Sessions are protected, not persons: the ε of someone with n sessions is up to n times as large.")
	default:
		risks = append(risks, "Requests that name no user count as one user together; a person with several accounts is protected less.")
	}
	if epsilon > weak {
		risks = append([]string{fmt.Sprintf("ε = %.3g bounds little for a single %s: it is for a partner under contract, not for publication.", epsilon, s.Unit)}, risks...)
	}
	c := Card{
		Schema: CardSchema, Tier: Partner, Unit: s.Unit, BlockSize: of.BlockSize, Tokenizer: of.Tokenizer, Template: of.Template,
		Key:     "none: there is no id of the source; blocks of the rows are numbered as they are generated",
		Time:    "synthetic: drawn from noisy counts over the declared capture window",
		Lengths: fmt.Sprintf("synthetic: within cells up to %d input and %d output tokens, whose edges do not depend on the data", s.MaxInput, s.MaxOutput),
		Columns: rulesOf(Public, nil), Sessions: &s,
		WP29: WP29{
			SinglingOut: "No record of the source is here: each row is drawn.",
			Linkability: "Rows belong to nobody, and sessions are drawn.",
			Inference:   fmt.Sprintf("Bounded by ε = %.3g for one %s. What holds for all of them can be learnt, as intended.", epsilon, s.Unit),
		},
		Risks: risks,
	}
	for i := range c.Columns {
		switch c.Columns[i].Column {
		case "arrival_ns":
			c.Columns[i].Rule = drawn + "drawn from noisy counts"
		case "think_ns", "parents":
			c.Columns[i].Rule = dropped
		}
	}
	c.Dropped = droppedOf(c.Columns)
	return c
}
