package audit

import (
	"context"

	"reprise/anonymize"
)

// card looks whether the output says what it is.
func card(_ context.Context, c *Case) Finding {
	o := c.Output
	tier := o.Tier()
	text, hash := o.Meta["card"], o.Meta["card_sha256"]
	switch {
	case tier == "":
		return failed(nil, "the output does not say of what tier it is")
	case o.Parquet == nil:
		return passed(nil, "tier %s; a %s carries no card", tier, o.Kind)
	case text == "":
		return failed(nil, "the output says tier %s and carries no privacy card", tier)
	}
	card, err := anonymize.ParseCard(text, hash)
	switch {
	case err != nil:
		return failed(nil, "%v", err)
	case card.Tier != tier:
		return failed(nil, "the output says tier %s, and its card another", tier)
	}
	if o.Trace != nil && o.Meta["digest"] == "" {
		return failed(nil, "the trace does not name the digest of its rows")
	}
	return passed(nil, "tier %s, and the card matches its hash", tier)
}
