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
			Linkability: "Possible: each user and session keeps one number, and other logs of the same traffic can " +
				"be joined by times and lengths.",
			Inference: "Possible: lengths and reuse show what kind of request it was, and shared blocks show who " +
				"sent the same prompt.",
		},
		Risks: []string{
			"Pseudonymous, not anonymous: exact lengths and times single out most records for anybody who saw some " +
				"of the traffic.",
			"Equal block ids show which requests share a prefix; someone who can put their own prompts into the " +
				"traffic can test guesses.",
			"For use inside the organisation that the traffic came from.",
		},
		Decided: decidedOf(p), Totals: t, Confined: p.Confined,
	}
	c.Dropped = droppedOf(c.Columns)
	if t.InputGaps.Total()+t.OutputGaps.Total() > 0 {
		c.Lengths = "exact; the source's own counts where its text is redacted, empty or incomplete"
	}
	if (t.Texts > 0 || p.apart()) && p.Tokenizer != nil { // else the rows were recorded earlier
		c.Tokenizer, c.Template = p.Tokenizer.Name(), p.Template.Name
		c.Risks = append(c.Risks, breakersRisk)
	}
	return c
}

var breakersRisk = fmt.Sprintf("The metadata show where near-identical prompts diverge: positions, lengths and "+
	"counts, of at least %d requests each.", breaker.MinRequests)

// countedFrom says what arrival 0 is.
func countedFrom(c trace.Capture) string {
	if c.Declared() {
		return "relative to the declared begin of the capture"
	}
	return "relative to the first arrival, the arrival of one request"
}

// weak is the ε above which a guarantee is more of a formality.
const weak = 4

// SessionsCard is the card of a model of sessions, and of the rows that are drawn from it.
// of describes the model: its tier, partner or public, its block size and tokenizer.
func SessionsCard(s dp.SessionStatement, of trace.Meta) Card {
	epsilon := s.Budget.Epsilon // with all releases of the source
	if s.Ledger != nil {
		epsilon = max(epsilon, s.Ledger.Epsilon)
	}
	risks := []string{
		fmt.Sprintf("The guarantee holds for one %s. A group is protected less: k of them with k times ε.", s.Unit),
		"Every release of the same traffic adds to what can be learnt. The ledger adds up the releases it knows.",
		"Values listed as public are not protected.",
	}
	switch s.Unit {
	case UnitRequest:
		risks = append([]string{"ONE REQUEST IS PROTECTED, NOT A PERSON: the ε of someone with n requests is n " +
			"times as large."}, risks...)
	case UnitSession:
		risks = append(risks, "Sessions are protected, not persons: the ε of someone with n sessions is up to n "+
			"times as large.")
	default:
		risks = append(risks, "Requests that name no user count as one user together; a person with several accounts "+
			"is protected less.")
	}
	switch {
	case epsilon > weak && of.Tier == Public:
		risks = append([]string{
			fmt.Sprintf("ε = %.3g PROTECTS LITTLE: 1 is usual, and above %d the guarantee means little for "+
				"a single %s.", epsilon, weak, s.Unit)}, risks...)
	case epsilon > weak:
		risks = append([]string{
			fmt.Sprintf("ε = %.3g bounds little for a single %s: it is for a partner under contract, not for "+
				"publication.", epsilon, s.Unit)}, risks...)
	}
	if s.Ledger != nil && s.Ledger.Epsilon > s.Budget.Epsilon {
		risks = append(risks, fmt.Sprintf("This is not the only release: with earlier releases and refused "+
			"attempts, ε is %.3g.", s.Ledger.Epsilon))
	}
	risks = append(risks, keyRisks(of, true)...)
	c := Card{
		Schema: CardSchema, Tier: of.Tier, Unit: s.Unit, BlockSize: of.BlockSize, Tokenizer: of.Tokenizer,
		Template: of.Template,
		Key:      "none: there is no id of the source; blocks of the rows are numbered as they are generated",
		Time:     "synthetic: drawn from noisy counts over the declared capture window",
		Lengths: fmt.Sprintf("synthetic: within cells up to %d input and %d output tokens, whose edges do not "+
			"depend on the data", s.MaxInput, s.MaxOutput),
		Columns: rulesOf(of.Tier), Sessions: &s,
		WP29: WP29{
			SinglingOut: "No record of the source is here: each row is drawn.",
			Linkability: "Rows belong to no person, and sessions are drawn.",
			Inference: fmt.Sprintf("Bounded by ε = %.3g for one %s. What holds for all of them can be learnt, "+
				"as intended.", epsilon, s.Unit),
		},
		Risks: risks,
	}
	c.Dropped = droppedOf(c.Columns)
	return c
}
