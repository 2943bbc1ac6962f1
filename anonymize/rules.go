package anonymize

// A Rule says what a tier does with a column, in words for the card.
type Rule struct {
	Column string `json:"column"`
	Rule   string `json:"rule"`
}

// rules lists every column of trace/1 for tier internal. A column without a
// rule would be dropped; a test holds that none is missing.
var rules = []Rule{
	{"arrival_ns", "exact, counted from the first arrival"},
	{"session", "renumbered densely, or inferred from shared prefixes where the source has none"},
	{"turn", "kept"},
	{"parents", "rows of this file"},
	{"think_ns", "kept"},
	{"tool_ns", "kept"},
	{"user", "renumbered densely"},
	{"model", "relabelled by first appearance, unless names were asked for"},
	{"adapter", "relabelled by first appearance"},
	{"kind", "closed list, else other"},
	{"class", "relabelled by first appearance"},
	{"replica", "relabelled by first appearance"},
	{"category", "computed"},
	{"input_tokens", "exact; counted where there is text, else as the source says"},
	{"output_tokens", "exact; as the source says, else counted from the text"},
	{"reasoning_tokens", "kept"},
	{"cached_tokens", "kept"},
	{"image_tokens", "kept"},
	{"images", "kept"},
	{"max_tokens", "kept"},
	{"temperature", "kept"},
	{"stream", "kept"},
	{"blocks", "every id, renumbered densely"},
	{"output_blocks", "every id, renumbered densely"},
	{"status", "closed list, else other"},
	{"finish_reason", "closed list, else other"},
	{"ttft_ns", "kept"},
	{"e2e_ns", "kept"},
}
