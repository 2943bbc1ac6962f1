package runs

import (
	"fmt"

	"reprise/anonymize"
	"reprise/replay/result"
	"reprise/trace"
)

// PrivacyOf is what the card of a workload says, for the results made of it.
func PrivacyOf(m *trace.Meta) (*result.Privacy, error) {
	if m.Card == "" {
		return nil, nil
	}
	card, err := anonymize.ParseCard(m.Card, m.CardHash)
	if err != nil {
		return nil, fmt.Errorf("the workload's privacy card: %w", err)
	}
	return &result.Privacy{Card: m.CardHash, Unit: card.Unit, Time: card.Time, Risks: card.Risks}, nil
}
