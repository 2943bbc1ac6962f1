package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/datasets"
)

// plurals name the kinds of files that carry no card. Others are called by their kind.
var plurals = map[string]string{kindPage: "pages", kindJSON: "JSON documents", kindOther: "other files"}

// card looks whether the output says what it is. Results, pages and JSON name a
// tier and carry no card.
func card(_ context.Context, c *Case) Finding {
	o := c.Output
	tier, text := o.Tier(), o.Meta["card"]
	switch {
	case tier == "" && o.Kind == kindOther:
		return inconclusive(nil, "a file of no kind of ours cannot say of what tier it is")
	case tier == "":
		return failed(nil, "the output does not say of what tier it is")
	case text == "" && tier == anonymize.Public && o.ofSpec():
		return passed(nil, "tier public, made of a specification and of no source")
	case text == "" && (!o.isParquet() || o.Meta["run"] != ""):
		return passed(nil, "tier %s; %s carry no card", tier, cmp.Or(plurals[o.Kind], o.Kind))
	case text == "":
		return failed(nil, "the output says tier %s and carries no privacy card", tier)
	case o.Trace != nil && o.Meta["digest"] == "":
		return failed(nil, "the trace does not name the digest of its rows")
	}
	if o.former() {
		return failed(nil, "its rows are requests of the source, made coarser by an earlier version: a few that are "+
			"known single out many of its sessions. No version makes or judges such releases any more. Make a new "+
			"one of the source: reprise anonymize TRACE -o OUTPUT")
	}
	sum := sha256.Sum256([]byte(text))
	if hex.EncodeToString(sum[:]) != o.Meta["card_sha256"] {
		return failed(nil, "the privacy card does not match its hash: the file was changed")
	}
	var said struct {
		Schema string `json:"schema"`
		Tier   string `json:"tier"`
		Public struct {
			CaptureNS int64 `json:"capture_ns"`
		} `json:"public"`
		Sessions *dp.SessionStatement `json:"sessions"`
	}
	if json.Unmarshal([]byte(text), &said) != nil || said.Tier != tier {
		return failed(nil, "the output says tier %s, and its card another", tier)
	}
	if said.Schema != anonymize.CardSchema && tier != anonymize.Public {
		// that of a public model of an earlier version has a layout of its own
		return failed(nil, "the privacy card does not have the schema %s", anonymize.CardSchema)
	}
	if s := said.Sessions; s != nil {
		if why := s.Wrong(); why != "" {
			return failed(nil, "%s", why)
		}
		if o.Meta["capture_begin"] != "" && !strings.HasPrefix(o.Meta["capture_begin"], "0s") {
			return failed(nil, "the metadata of a release tell when its capture began")
		}
	}
	if tier == anonymize.Public && said.Sessions == nil && said.Public.CaptureNS <= 0 {
		return failed(nil, "its times count from the first request of the source, which no noise hides: the card "+
			"names no declared capture window. Import the source anew with --capture-begin and --capture-end, and "+
			"release that")
	}
	if tier == anonymize.Public && said.Sessions == nil {
		return inconclusive(nil, formerPublic)
	}
	if said.Schema == anonymize.CardSchema {
		if why := unknownInCard(text, tier); why != "" {
			return failed(nil, "%s", why)
		}
	}
	return passed(nil, "tier %s, and the card matches its hash", tier)
}

// unknownInCard says what this version of the tool would not have written in a card, or "": a key of another name, or
// more about the fields of the source than the name of a format and counts by kind. The names of other fields are the
// source's own, and may tell something.
func unknownInCard(text, tier string) string {
	var c anonymize.Card
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if dec.Decode(&c) != nil || c.FormerPublic != nil {
		return "the privacy card holds what this version of the tool does not write"
	}

	f := c.SourceFields
	if f == nil {
		return ""
	}
	if tier != anonymize.Internal {
		return "the card of a release tells of the fields of the source"
	}
	if _, ok := datasets.ReadFields(f.Format, f.Mapped); !ok && (f.Format != "" || f.Mapped != nil) {
		return "the privacy card names fields of the source that are of no known format"
	}
	for kind := range f.Kinds {
		if !slices.Contains(datasets.FieldKinds(), kind) {
			return "the privacy card names fields of the source by another kind than it has"
		}
	}
	return ""
}

// ofSpec reports whether the output is a workload that was made of a specification.
func (o *Output) ofSpec() bool { return o.Meta["source_format"] == "spec" }
