package export

import (
	"fmt"
	"slices"
	"strings"

	"reprise/trace"
)

// lossyColumns are the columns that a format may not hold, each with whether a
// row says something in it.
var lossyColumns = []struct {
	name string
	set  func(*trace.Request) bool
}{
	{"session", func(r *trace.Request) bool { return r.Session != nil }},
	{"turn", func(r *trace.Request) bool { return r.Turn != nil }},
	{"parents", func(r *trace.Request) bool { return len(r.Parents) > 0 }},
	{"think_ns", func(r *trace.Request) bool { return r.ThinkNS != nil }},
	{"tool_ns", func(r *trace.Request) bool { return r.ToolNS != nil }},
	{"user", func(r *trace.Request) bool { return r.User != nil }},
	{"model", func(r *trace.Request) bool { return r.Model != "" }},
	{"adapter", func(r *trace.Request) bool { return r.Adapter != "" }},
	{"kind", func(r *trace.Request) bool { return r.Kind != "" }},
	{"class", func(r *trace.Request) bool { return r.Class != nil }},
	{"replica", func(r *trace.Request) bool { return r.Replica != nil }},
	{"category", func(r *trace.Request) bool { return r.Category != "" }},
	{"reasoning_tokens", func(r *trace.Request) bool { return r.ReasoningTokens != nil }},
	{"cached_tokens", func(r *trace.Request) bool { return r.CachedTokens != nil }},
	{"image_tokens", func(r *trace.Request) bool { return r.ImageTokens != nil }},
	{"images", func(r *trace.Request) bool { return r.Images != nil }},
	{"max_tokens", func(r *trace.Request) bool { return r.MaxTokens != nil }},
	{"temperature", func(r *trace.Request) bool { return r.Temperature != nil }},
	{"stream", func(r *trace.Request) bool { return r.Stream != nil }},
	{"blocks", func(r *trace.Request) bool { return len(r.Blocks) > 0 }},
	{"output_blocks", func(r *trace.Request) bool { return r.OutputBlocks != nil }},
	{"status", func(r *trace.Request) bool { return r.Status != "" && r.Status != trace.StatusOK }},
	{"finish_reason", func(r *trace.Request) bool { return r.FinishReason != "" }},
	{"ttft_ns", func(r *trace.Request) bool { return r.TTFTNS != nil }},
	{"e2e_ns", func(r *trace.Request) bool { return r.E2ENS != nil }},
}

// losses counts what a file does not say of the rows in it.
type losses struct {
	rows    int64
	says    []bool  // by lossyColumns: the format holds the column
	columns []int64 // by lossyColumns: rows that had a value
	order   []string
	counts  map[string]int64 // by sentence
	sums    []func() string
}

// newLosses makes a counter for a format that holds the columns in says.
func newLosses(says []string) *losses {
	l := &losses{says: make([]bool, len(lossyColumns)), columns: make([]int64, len(lossyColumns)), counts: map[string]int64{}}
	for c, column := range lossyColumns {
		l.says[c] = slices.Contains(says, column.name)
	}
	return l
}

// count counts a row of which the sentence is true. A sentence takes two
// numbers, of such rows and of all.
func (l *losses) count(sentence string, isTrue bool) {
	if !isTrue {
		return
	}
	if l.counts[sentence] == 0 {
		l.order = append(l.order, sentence)
	}
	l.counts[sentence]++
}

// sum adds a sentence that is made at the end; "" is none.
func (l *losses) sum(sentence func() string) { l.sums = append(l.sums, sentence) }

const (
	readAsOthers = "%d of %d rows failed or were cancelled; in the file they are requests like any other"
	roundedToMS  = "%d of %d arrivals were rounded to the millisecond"
)

// add counts a row that was written.
func (l *losses) add(r *trace.Request) {
	l.rows++
	for c, column := range lossyColumns {
		if !l.says[c] && column.set(r) {
			l.columns[c]++
			l.count(readAsOthers, column.name == "status")
		}
	}
}

// lines says what was lost, nil when nothing was.
func (l *losses) lines() []string {
	var out []string
	for _, sentence := range l.order {
		out = append(out, fmt.Sprintf(sentence, l.counts[sentence], l.rows))
	}
	for _, sentence := range l.sums {
		if s := sentence(); s != "" && l.rows > 0 {
			out = append(out, s)
		}
	}
	var columns []string
	for c, n := range l.columns {
		if n > 0 {
			columns = append(columns, fmt.Sprintf("%s (%d)", lossyColumns[c].name, n))
		}
	}
	if len(columns) > 0 {
		out = append(out, "columns left out, with the rows that had a value: "+strings.Join(columns, ", "))
	}
	return out
}
