package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"reprise/anonymize"
)

// publicTier is the tier of models with noise, and of what is generated of them.
const publicTier = "public"

// card looks whether the output says what it is. Results, pages and JSON name a
// tier and carry no card.
func card(_ context.Context, c *Case) Finding {
	o := c.Output
	tier, text := o.Tier(), o.Meta["card"]
	switch {
	case tier == "" && o.Kind == KindOther:
		return inconclusive(nil, "a file of no kind of ours cannot say of what tier it is")
	case tier == "":
		return failed(nil, "the output does not say of what tier it is")
	case text == "" && tier == publicTier && o.ofSpec():
		return passed(nil, "tier public, made of a specification and of no source")
	case text == "" && (o.Parquet == nil || o.Meta["run"] != ""):
		return passed(nil, "tier %s; %s carry no card", tier, o.plural())
	case text == "":
		return failed(nil, "the output says tier %s and carries no privacy card", tier)
	case o.Trace != nil && o.Meta["digest"] == "":
		return failed(nil, "the trace does not name the digest of its rows")
	}
	sum := sha256.Sum256([]byte(text))
	if hex.EncodeToString(sum[:]) != o.Meta["card_sha256"] {
		return failed(nil, "the privacy card does not match its hash")
	}
	var said struct {
		Schema string `json:"schema"`
		Tier   string `json:"tier"`
	}
	if json.Unmarshal([]byte(text), &said) != nil || said.Tier != tier {
		return failed(nil, "the output says tier %s, and its card another", tier)
	}
	if said.Schema != anonymize.CardSchema && tier != publicTier { // that of a public model has a layout of its own
		return failed(nil, "the privacy card is not of schema %s", anonymize.CardSchema)
	}
	return passed(nil, "tier %s, and the card matches its hash", tier)
}

func (o *Output) plural() string {
	switch o.Kind {
	case KindPage:
		return "pages"
	case KindJSON:
		return "JSON documents"
	case KindOther:
		return "other files"
	}
	return o.Kind
}

// ofSpec reports whether the output is a workload that was made of a specification.
func (o *Output) ofSpec() bool { return o.Meta["source_format"] == "spec" }
