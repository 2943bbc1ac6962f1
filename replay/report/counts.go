package report

import (
	"fmt"
	"strings"

	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/usage"
)

// ImpossibleCounts are the counts of servers that cannot be: they contradict each other, the
// request, or the answer. No figure uses them.
type ImpossibleCounts struct {
	Rows       int64            `json:"rows"` // successful requests with one or more
	InputRows  int64            `json:"prompt_rows"`
	CachedRows int64            `json:"cached_rows"`
	OutputRows int64            `json:"output_rows"`
	Kinds      []ImpossibleKind `json:"kinds"`
}

// An ImpossibleKind is one way in which counts cannot be, and the first request that has it.
type ImpossibleKind struct {
	Kind string `json:"kind"` // a key of [usage.Finding], such as output_above_asked
	Rows int64  `json:"rows"`

	Row     int64  `json:"first_row"`
	Input   *int64 `json:"first_prompt_tokens"` // as they were claimed
	Cached  *int64 `json:"first_cached_tokens"`
	Output  *int64 `json:"first_output_tokens"`
	Asked   *int32 `json:"first_output_tokens_asked"`
	Prompt  int32  `json:"first_prompt_tokens_asked"`
	Text    *int64 `json:"first_text_bytes"`
	Events  int32  `json:"first_token_events"`
	finding usage.Finding
}

// add takes a successful result.
func (c *ImpossibleCounts) add(r *result.Result) {
	found := r.Contradictions()
	if found == 0 {
		return
	}
	c.Rows++
	for _, count := range []struct {
		kind usage.Kind
		rows *int64
	}{{usage.Input, &c.InputRows}, {usage.Cached, &c.CachedRows}, {usage.Output, &c.OutputRows}} {
		if found.Refutes(count.kind) {
			*count.rows++
		}
	}
	if found.Has(usage.NoCount) && r.Output == nil && !found.Refutes(usage.Output) {
		c.OutputRows++
	}

	for _, one := range found.All() {
		c.kind(one, r).Rows++
	}
}

// kind is the entry of a finding, of which r is the first where there is none yet.
func (c *ImpossibleCounts) kind(one usage.Finding, r *result.Result) *ImpossibleKind {
	for i := range c.Kinds {
		if c.Kinds[i].finding == one {
			return &c.Kinds[i]
		}
	}
	c.Kinds = append(c.Kinds, ImpossibleKind{Kind: one.Key(), finding: one, Row: r.RowID,
		Input: claimed(r.ClaimedInput, r.Input), Cached: claimed(r.ClaimedCached, r.Cached),
		Output: claimed(r.ClaimedOutput, r.Output),
		Asked:  r.WantOutput, Prompt: r.WantInput, Text: r.TextBytes, Events: r.Events})
	return &c.Kinds[len(c.Kinds)-1]
}

// claimed is a count as the server had it.
func claimed(wrong *int64, right *int32) *int64 {
	if wrong == nil && right != nil {
		return new(int64(*right))
	}
	return wrong
}

// String says what cannot be, with the numbers of the first request of each kind.
func (c *ImpossibleCounts) String() string {
	var kinds []string
	for i := range c.Kinds {
		k := &c.Kinds[i]
		kinds = append(kinds, fmt.Sprintf("answers %s: %s, such as row %d with %s", k.finding.Says(),
			doc.Brief(k.Rows), k.Row, k.numbers()))
	}
	return strings.Join(kinds, "; ")
}

// numbers are the counts of the first request, and what they are held against.
func (k *ImpossibleKind) numbers() string {
	var says []string
	say := func(n *int64, what string) {
		if n != nil {
			says = append(says, doc.Count(*n)+" "+what)
		}
	}
	if k.finding.Refutes(usage.Input) || k.finding.Refutes(usage.Cached) || k.finding == usage.NoCount {
		say(k.Cached, "cached")
		say(k.Input, "prompt tokens counted")
		sent := int64(k.Prompt)
		say(&sent, "sent")
	}
	if k.finding.Refutes(usage.Output) || k.finding == usage.NoCount {
		say(k.Output, "output tokens counted")
		if k.Asked != nil {
			asked := int64(*k.Asked)
			say(&asked, "output tokens asked for")
		}
		says = append(says, doc.Many(int64(k.Events), "event"))
		say(k.Text, "bytes of text")
	}
	return strings.Join(says, ", ")
}
