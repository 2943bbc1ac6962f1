package anonymize

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

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

// drawn begins the rule of every column of tier public that is not dropped.
const drawn = "synthetic: "

// columns has a rule for every column of trace/1 in each tier. What is in braces
// is filled in from the settings of a release.
var columns = []struct{ name, internal, partner, public string }{
	{"arrival_ns", "exact, counted from the declared begin of the capture, or else from the first arrival",
		"drawn anew within a bin of {quantum}, counted from the declared begin of the capture, or else from the first arrival; turns of a session keep their order",
		drawn + "drawn within one of 24 periods"},
	{"session", "renumbered; inferred from shared prefixes where the source has none",
		"{session}", drawn + "generated"},
	{"turn", "kept", "renumbered among the released rows", drawn + "generated"},
	{"parents", "row numbers in this file", "{parents}", drawn + "row numbers in this file"},
	{"think_ns", "kept", "{pauses}", drawn + "drawn from noisy counts"},
	{"tool_ns", "kept", "{pauses}", dropped},
	{"user", "renumbered", dropped, dropped},
	{"model", "relabelled in order of first appearance, unless names are kept", "{names}", dropped},
	{"adapter", "relabelled in order of first appearance", "{names}", dropped},
	{"kind", "known values; anything else is other", "{closed}", dropped},
	{"class", "relabelled in order of first appearance", "{names}", dropped},
	{"replica", "relabelled in order of first appearance", dropped, dropped},
	{"category", "computed", "computed from the released rows", drawn + "computed from the rows of this file"},
	{"input_tokens", "exact: from the source, else counted from the text", "{lengths}", drawn + "drawn from noisy counts"},
	{"output_tokens", "exact: from the source, else counted from the text", "{lengths}", drawn + "drawn from noisy counts"},
	{"reasoning_tokens", "kept", dropped, dropped},
	{"cached_tokens", "kept", dropped, dropped},
	{"image_tokens", "kept", dropped, dropped},
	{"images", "kept", dropped, dropped},
	{"max_tokens", "kept", dropped, dropped},
	{"temperature", "kept", dropped, dropped},
	{"stream", "kept", dropped, dropped},
	{"blocks", "all ids, renumbered",
		"one id for all if at least {k_share} have the block, else {own}; cut or padded to the released length; renumbered",
		drawn + "numbered as generated; shared according to noisy counts"},
	{"output_blocks", "all ids, renumbered", dropped, dropped},
	{"status", "known values; anything else is other", "{closed}", drawn + "always ok"},
	{"finish_reason", "known values; anything else is other", dropped, dropped},
	{"ttft_ns", "kept", dropped, dropped},
	{"e2e_ns", "kept", dropped, dropped},
	{"length_source", "closed list", dropped, dropped},
	{"reuse_source", "closed list", dropped, dropped},
}

// rulesOf are the rules of a tier; p is for [Partner] alone. Rows of tier raw are
// those of tier internal. Another tier drops everything.
func rulesOf(tier string, p *PartnerPolicy) []Rule {
	fill := strings.NewReplacer()
	if p != nil {
		fill = p.words()
	}
	out := make([]Rule, 0, len(columns))
	for _, c := range columns {
		rule := ""
		switch tier {
		case Internal, "raw":
			rule = c.internal
		case Partner:
			rule = fill.Replace(c.partner)
		case Public:
			rule = c.public
		}
		if rule == "" {
			rule = dropped
		}
		out = append(out, Rule{c.name, rule})
	}
	return out
}

// words fill the rules of a release to a partner.
func (p *PartnerPolicy) words() *strings.Replacer {
	unsourced := "; inferred from the released rows where the source has none"
	if p.dropsOwn() {
		unsourced = "; empty where the source has none"
	}
	session, parents := "renumbered"+unsourced, "row numbers in this file"
	pauses := fmt.Sprintf("the middle of a bucket (%d per octave), in whole %s", p.PerOctave, seconds(p.Quantum))
	if p.LinkK > 1 {
		session = fmt.Sprintf("renumbered; a new session begins where fewer than %d have sessions of the same lengths so far%s", p.LinkK, unsourced)
		parents += ", of the same session"
		pauses += "; none before the first turn of a session"
	}
	own := "one for each of them"
	if p.DropOwn {
		own = "another one each time"
	}
	return strings.NewReplacer(
		"{own}", own,
		"{session}", session, "{parents}", parents,
		"{quantum}", seconds(p.Quantum),
		"{k_share}", fmt.Sprint(p.KShare),
		"{lengths}", fmt.Sprintf("the middle of a bucket (%d per octave); pairs of input and output that fewer than %d have are merged with a neighbour, or the request is left out", p.PerOctave, p.KClass),
		"{names}", fmt.Sprintf("numbered by frequency; other if fewer than %d have the name", p.KClass),
		"{closed}", fmt.Sprintf("known values; other if fewer than %d have the value", p.KClass),
		"{pauses}", pauses,
	)
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
	for _, r := range rulesOf(tier, nil) {
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

// seconds is a duration for a card.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) + " s" }
