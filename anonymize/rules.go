package anonymize

import (
	"reflect"
	"strings"

	"reprise/trace"
)

// Public is the tier of what is differentially private: a model of noisy counts,
// and rows drawn from it. No record of the source is in it. Package synth makes
// both.
const Public = "public"

// A Rule says what a tier does with a column, in words for the card.
type Rule struct {
	Column string `json:"column"`
	Rule   string `json:"rule"`
}

// dropped is the rule of a column that a tier does not have, and that of every
// column without a rule.
const dropped = "dropped"

// drawn begins the rule of every column of tiers partner and public that is not dropped.
const drawn = "synthetic: "

// columns has a rule for every column of a trace in each tier.
var columns = []struct{ name, internal, partner, public string }{
	{"arrival_ns", "exact, counted from the declared begin of the capture, or else from the first arrival",
		drawn + "drawn from noisy counts", drawn + "drawn within one of 24 periods"},
	{"session", "renumbered; inferred where the source has none and prompts hold earlier ones with their answers",
		drawn + "generated", drawn + "generated"},
	{"turn", "kept", drawn + "generated", drawn + "generated"},
	{"parents", "row numbers in this file", dropped, drawn + "row numbers in this file"},
	{"think_ns", "kept", dropped, drawn + "drawn from noisy counts"},
	{"tool_ns", "kept", dropped, dropped},
	{"user", "renumbered", dropped, dropped},
	{"model", "relabelled in order of first appearance, unless names are kept", dropped, dropped},
	{"adapter", "relabelled in order of first appearance", dropped, dropped},
	{"kind", "known values; anything else is other", dropped, dropped},
	{"class", "relabelled in order of first appearance", dropped, dropped},
	{"replica", "relabelled in order of first appearance", dropped, dropped},
	{"category", "computed", drawn + "computed from the rows of this file",
		drawn + "computed from the rows of this file"},
	{"input_tokens", "exact: from the source, else counted from the text", drawn + "drawn from noisy counts",
		drawn + "drawn from noisy counts"},
	{"output_tokens", "exact: from the source, else counted from the text", drawn + "drawn from noisy counts",
		drawn + "drawn from noisy counts"},
	{"reasoning_tokens", "kept", dropped, dropped},
	{"cached_tokens", "kept", dropped, dropped},
	{"image_tokens", "kept", dropped, dropped},
	{"images", "kept", dropped, dropped},
	{"max_tokens", "kept", dropped, dropped},
	{"temperature", "kept", dropped, dropped},
	{"stream", "kept", dropped, dropped},
	{"blocks", "all ids, renumbered", drawn + "numbered as generated; shared according to noisy counts",
		drawn + "numbered as generated; shared according to noisy counts"},
	{"output_blocks", "all ids, renumbered", dropped, dropped},
	{"status", "known values; anything else is other", drawn + "always ok", drawn + "always ok"},
	{"finish_reason", "known values; anything else is other", dropped, dropped},
	{"ttft_ns", "kept", dropped, dropped},
	{"e2e_ns", "kept", dropped, dropped},
	{"length_source", "closed list", dropped, dropped},
	{"reuse_source", "closed list", dropped, dropped},
	{"thread", "kept", dropped, dropped},
}

// rulesOf are the rules of a tier. Rows of tier raw are those of tier internal. Another
// tier drops everything.
func rulesOf(tier string) []Rule {
	out := make([]Rule, 0, len(columns))
	for _, c := range columns {
		rule := dropped
		switch tier {
		case Internal, Raw:
			rule = c.internal
		case Partner:
			rule = c.partner
		case Public:
			rule = c.public
		}
		out = append(out, Rule{c.name, rule})
	}
	return out
}

// droppedOf are the columns that rules drop.
func droppedOf(rules []Rule) []string {
	out := []string{}
	for _, r := range rules {
		if r.Rule == dropped {
			out = append(out, r.Column)
		}
	}
	return out
}

// Enforce is a writer to dst that leaves of each row what the rules of a tier
// keep, and clears every other column, in the rows that it is given. A column
// that has no rule yet is cleared as well.
func Enforce(tier string, dst trace.Writer[trace.Request]) trace.Writer[trace.Request] {
	keep := map[string]bool{}
	for _, r := range rulesOf(tier) {
		keep[r.Column] = r.Rule != dropped
	}
	e := &enforcer{dst: dst}
	t := reflect.TypeFor[trace.Request]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("parquet"), ",")
		if !keep[name] {
			e.clear = append(e.clear, i)
		}
	}
	return e
}

// An enforcer is what [Enforce] returns.
type enforcer struct {
	dst   trace.Writer[trace.Request]
	clear []int // fields
}

// Write implements [trace.Writer].
func (e *enforcer) Write(rows []trace.Request) (int, error) {
	if len(e.clear) > 0 {
		for i := range rows {
			row := reflect.ValueOf(&rows[i]).Elem()
			for _, f := range e.clear {
				row.Field(f).SetZero()
			}
		}
	}
	return e.dst.Write(rows)
}

// WritePlain implements [trace.PlainWriter].
func (e *enforcer) WritePlain(p *trace.PlainRows) error {
	if to, ok := e.dst.(trace.PlainWriter); ok && len(e.clear) == 0 {
		return to.WritePlain(p)
	}
	_, err := e.Write(p.Append(nil, p.Len()))
	return err
}
