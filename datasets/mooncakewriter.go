package datasets

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"reprise/trace"
)

// A MooncakeWriter writes rows in the format of the Mooncake release, one line
// for each, spelled as there. It implements trace.Writer[trace.Request].
type MooncakeWriter struct {
	w         *bufio.Writer
	blockSize int
	rows      int64
	rounded   int64
	lost      []int64 // rows that had a value, by lossyColumns
	buf       []byte
}

// NewMooncakeWriter writes to w rows whose blocks are of blockSize tokens; 0
// stands for a trace without block ids, which the format cannot express.
func NewMooncakeWriter(w io.Writer, blockSize int) (*MooncakeWriter, error) {
	if blockSize < 1 {
		return nil, errors.New("the trace has no block ids, which the Mooncake format needs")
	}
	return &MooncakeWriter{w: bufio.NewWriter(w), blockSize: blockSize, lost: make([]int64, len(lossyColumns))}, nil
}

// lossyColumns are the columns that the format cannot hold, each with whether a
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
	{"output_blocks", func(r *trace.Request) bool { return r.OutputBlocks != nil }},
	{"status", func(r *trace.Request) bool { return r.Status != "" && r.Status != trace.StatusOK }},
	{"finish_reason", func(r *trace.Request) bool { return r.FinishReason != "" }},
	{"ttft_ns", func(r *trace.Request) bool { return r.TTFTNS != nil }},
	{"e2e_ns", func(r *trace.Request) bool { return r.E2ENS != nil }},
}

// Write implements trace.Writer[trace.Request]. A row without one block id for
// each full block of its input and one for the rest is an error: the format
// cannot say that ids are unknown.
func (m *MooncakeWriter) Write(rows []trace.Request) (int, error) {
	for i := range rows {
		r := &rows[i]
		if len(r.Blocks) != blocksOf(r.InputTokens, m.blockSize) {
			return i, fmt.Errorf("row %d does not have a block id for each block of its input: the Mooncake format needs them", m.rows)
		}
		m.buf = appendMooncake(m.buf[:0], r)
		if _, err := m.w.Write(m.buf); err != nil {
			return i, err
		}
		m.rows++
		if r.ArrivalNS%1e6 != 0 {
			m.rounded++
		}
		for c, column := range lossyColumns {
			if column.set(r) {
				m.lost[c]++
			}
		}
	}
	return len(rows), nil
}

func appendMooncake(b []byte, r *trace.Request) []byte {
	b = append(b, `{"timestamp": `...)
	b = strconv.AppendInt(b, (r.ArrivalNS+5e5)/1e6, 10)
	b = append(b, `, "input_length": `...)
	b = strconv.AppendInt(b, int64(r.InputTokens), 10)
	b = append(b, `, "output_length": `...)
	b = strconv.AppendInt(b, int64(r.OutputTokens), 10)
	b = append(b, `, "hash_ids": [`...)
	for i, id := range r.Blocks {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendUint(b, id, 10)
	}
	return append(b, "]}\n"...)
}

// Close writes what is buffered. It does not close the underlying writer.
func (m *MooncakeWriter) Close() error { return m.w.Flush() }

// Loss says what the file does not tell of the rows written so far, a sentence
// for each kind of loss.
func (m *MooncakeWriter) Loss() []string {
	var loss []string
	if m.rounded > 0 {
		loss = append(loss, fmt.Sprintf("%d of %d arrivals were rounded to the millisecond", m.rounded, m.rows))
	}
	if m.blockSize != mooncakeBlock {
		loss = append(loss, fmt.Sprintf("readers of the format take a block to be %d tokens; here it is %d", mooncakeBlock, m.blockSize))
	}
	var columns []string
	for c, n := range m.lost {
		if n > 0 {
			columns = append(columns, fmt.Sprintf("%s (%d)", lossyColumns[c].name, n))
		}
	}
	if len(columns) > 0 {
		loss = append(loss, "columns left out, with the rows that had a value: "+strings.Join(columns, ", "))
	}
	return loss
}
