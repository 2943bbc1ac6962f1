package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"reprise/trace"
)

// A Format is one that a trace can be written in.
type Format struct {
	Name    string
	About   string   // one line
	Example string   // one record, as the writer spells it
	Loses   []string // what the format, or its reader, has no place for

	// Use is how the tool that reads the format is told of the file. FILE,
	// HEADER, ROWS, BLOCK, MODEL and URL stand for the names of the files, the
	// number of rows, the block size, the model and the server. Empty when no one tool
	// is meant.
	Use string
	// UseBlockless is Use for a trace without blocks, where that differs.
	UseBlockless string
	NameEnd      string // the end of the file's name without which the tool does not read it; "" takes any
	Tried        string // release of the tool with which Use ran, and when; empty: it was not tried

	NeedsBlocks  bool   // a trace without block ids cannot be written
	NeedsPrompts bool   // Options.Prompter is needed
	HeaderExt    string // the file name extension of a second file, Options.Header; "" without one

	top  string   // what stands above the records
	says []string // the columns that a record holds, besides arrival and lengths
	open func(o Options, l *losses) (encoder, error)
}

// A Prompter makes prompts where a format wants text. Prompt appends that of
// row to buf; package synth makes some with exactly the tokens of the row.
type Prompter interface {
	Prompt(row *trace.Request, buf []byte) ([]byte, error)
}

// Options hold what a trace file states beside its rows, and
// what some formats need to be told.
type Options struct {
	BlockSize int       // tokens in a full block of the rows; 0 for a trace without blocks
	Prompter  Prompter  // for the formats that hold prompts
	Model     string    // stands in place of the rows' models, in formats of requests
	Header    io.Writer // for the formats that have a second file
}

// A Writer writes rows in a format. It is given a whole trace, in its order,
// since the parents of a row are numbers of rows.
type Writer interface {
	trace.Writer[trace.Request]
	// Loss lists what the file leaves out of the rows written so far, a
	// sentence for each kind of loss with the number of rows concerned; nil
	// when it tells all.
	Loss() []string
	// Close writes what is buffered. It does not close the underlying writer.
	Close() error
}

// An encoder appends a row, which has that number in the file, and counts what
// of it the format cannot say.
type encoder func(b []byte, row int64, r *trace.Request) ([]byte, error)

// A writer is the Writer of every format.
type writer struct {
	w      *bufio.Writer
	encode encoder
	losses *losses
	buf    []byte
}

func (f *writer) Write(rows []trace.Request) (int, error) {
	for i := range rows {
		r := &rows[i]
		err := errNegative
		if r.ArrivalNS >= 0 && r.InputTokens >= 0 && r.OutputOr(0) >= 0 {
			f.buf, err = f.encode(f.buf[:0], f.losses.rows, r)
		}
		if err != nil {
			return i, fmt.Errorf("row %d %w", f.losses.rows, err)
		}
		if _, err := f.w.Write(f.buf); err != nil {
			return i, err
		}
		f.losses.count("%d of %d rows have no output length, so the file has none for them", r.OutputTokens == nil &&
			r.Status != trace.StatusFailed)
		f.losses.rows++
		for c, column := range lossyColumns {
			if !f.losses.says[c] && column.set(r) {
				f.losses.columns[c]++
				f.losses.count(readAsOthers, column.name == "status")
			}
		}
	}
	return len(rows), nil
}

func (f *writer) Loss() []string {
	var out []string
	l := f.losses
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

func (f *writer) Close() error { return f.w.Flush() }

var errNegative = errors.New("has a negative arrival or length, which no format can hold")

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
	{"length_source", func(r *trace.Request) bool { return r.LengthSource != "" }},
	{"reuse_source", func(r *trace.Request) bool { return r.ReuseSource != "" }},
	{"thread", func(r *trace.Request) bool { return r.Thread != nil }},
}

// losses counts what a file leaves out of its rows.
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
	l := &losses{says: make([]bool, len(lossyColumns)), columns: make([]int64, len(lossyColumns)),
		counts: map[string]int64{}}
	for c, column := range lossyColumns {
		l.says[c] = slices.Contains(says, column.name)
	}
	return l
}

// count counts a row to which the sentence applies. A sentence takes two
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

// addSentence adds a sentence that is made at the end; "" is none.
func (l *losses) addSentence(sentence func() string) { l.sums = append(l.sums, sentence) }

const (
	readAsOthers = "%d of %d rows failed or were cancelled; in the file they are requests like any other"
	roundedToMS  = "%d of %d arrivals were rounded to the millisecond"
)
