package anonymize

import (
	"fmt"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// PublicCard is the card of tier public, of a model and of the rows that are
// drawn from it. of describes the model: its block size and tokenizer.
func PublicCard(s dp.Statement, of trace.Meta) Card {
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
			Inference:   inference(&s),
		},
		Risks: publicRisks(&s),
	}
	c.Dropped = droppedOf(c.Columns)
	return c
}

// weak is the ε above which a guarantee is more of a formality.
const weak = 4

// spent is ε with all releases of the source.
func spent(s *dp.Statement) float64 {
	if s.Ledger != nil {
		return s.Ledger.Epsilon
	}
	return s.Budget.Epsilon
}

func inference(s *dp.Statement) string {
	if spent(s) > weak {
		return fmt.Sprintf("To some degree: at ε = %.3g what one %s adds to the counts may show.", spent(s), s.Unit)
	}
	return fmt.Sprintf("Hardly: whatever is concluded from this file would be concluded about as well without any one %s. What holds of all of them can be learnt, as it is meant to.", s.Unit)
}

func publicRisks(s *dp.Statement) []string {
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
	if spent(s) > weak {
		risks = append([]string{fmt.Sprintf("ε = %.3g PROTECTS LITTLE: 1 is usual, and above %d the guarantee hardly says anything of a single %s.", spent(s), weak, s.Unit)}, risks...)
	}
	if s.Ledger != nil && s.Ledger.Epsilon > s.Budget.Epsilon {
		risks = append(risks, fmt.Sprintf("This is not the only release: with those before, and refused attempts, ε is %.3g.", s.Ledger.Epsilon))
	}
	return risks
}
