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
		BlockSize: p.blockSize(), Time: "exact, " + countedFrom(p.Capture), Lengths: "exact", Columns: rulesOf(p.Tier),
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
		Columns: rulesOf(Public), Public: &s,
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
	risks = append(risks, keyRisks(of, true)...)
	c := Card{
		Schema: CardSchema, Tier: Partner, Unit: s.Unit, BlockSize: of.BlockSize, Tokenizer: of.Tokenizer, Template: of.Template,
		Key:     "none: there is no id of the source; blocks of the rows are numbered as they are generated",
		Time:    "synthetic: drawn from noisy counts over the declared capture window",
		Lengths: fmt.Sprintf("synthetic: within cells up to %d input and %d output tokens, whose edges do not depend on the data", s.MaxInput, s.MaxOutput),
		Columns: rulesOf(Partner), Sessions: &s,
		WP29: WP29{
			SinglingOut: "No record of the source is here: each row is drawn.",
			Linkability: "Rows belong to nobody, and sessions are drawn.",
			Inference:   fmt.Sprintf("Bounded by ε = %.3g for one %s. What holds for all of them can be learnt, as intended.", epsilon, s.Unit),
		},
		Risks: risks,
	}
	c.Dropped = droppedOf(c.Columns)
	return c
}
