package anonymize

import (
	"errors"

	"reprise/trace"
)

// A Decision says who decides a rule by which the records of a source are read: what holds for all
// records must not be decided by those of one user where noise is to hide each user.
type Decision struct {
	Rule string `json:"rule"`
	By   string `json:"by"`
}

// By whom rules are decided.
const (
	byFormat  = "the format"
	byRecord  = "each record by itself, or a flag of the import"
	byUser    = "the records of each user for that user"
	byNobody  = "no record: it is the same for all"
	byFirst   = "the first records, or a flag of the import: declared public"
	byAll     = "the records of all users together"
	bySomeRow = "whether some record has one: declared public"
)

// decidedOf lists the rules of an import.
func decidedOf(p *Policy) []Decision {
	ratio, texts, prefixes, blocks := byNobody, byRecord, byUser, byFormat
	if !p.apart() {
		ratio, texts, prefixes, blocks = byAll, byAll, byAll, byAll
	}
	return []Decision{
		{"the format of the source, and how its columns, numbers and times are written", byFirst},
		{"whether counts include cached tokens and reasoning", byRecord},
		{"how many tokens of the server one token of the text is", ratio},
		{"which texts stand in place of prompts", texts},
		{"which prefixes the cached tokens show", prefixes},
		{"whether there are blocks and a tokenizer", blocks},
		{"whether sessions are named", bySomeRow},
	}
}

// errLearnt is returned of a trace whose import decided for all users by the records of some.
var errLearnt = errors.New("the rows were imported by an earlier version, which decided for all users by the records " +
	"of some, such as whether input counts include cached tokens: " +
	"noise does not hide that. Import the log again, with --capture-begin and --capture-end")

// DecidedOf lists the rules by which the rows of a trace were read, for the card of a release of
// it. It fails with [errLearnt] where records of one user may have decided for those of others. A
// trace without a card was made by other means, and lists none; one without a declared window
// has no release.
func DecidedOf(m trace.Meta) ([]Decision, error) {
	if m.Card == "" || !m.Capture.Declared() {
		return nil, nil
	}
	c, err := ParseCard(m.Card, m.CardHash)
	if err != nil {
		return nil, err
	}
	if len(c.Decided) == 0 {
		return nil, errLearnt
	}
	for _, d := range c.Decided {
		if d.By == byAll {
			return nil, errLearnt
		}
	}
	return c.Decided, nil
}
