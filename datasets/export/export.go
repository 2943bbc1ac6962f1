package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"reprise/datasets"
	"reprise/trace"
)

// A Format is one that a trace can be written in.
type Format struct {
	Name    string
	About   string   // one line
	Example string   // one record, as the writer spells it
	Loses   []string // what the format, or its reader, cannot say of any trace

	// Use is how the tool that reads the format is told of the file. FILE,
	// HEADER, ROWS, BLOCK and MODEL stand for the names of the files, the
	// number of rows, the block size and the model. Empty when no one tool is meant.
	Use string

	NeedsBlocks  bool   // a trace without block ids cannot be written
	NeedsPrompts bool   // Options.Prompter is needed
	HeaderExt    string // the file name extension of a second file, Options.Header; "" without one

	top  string   // what stands above the records
	says []string // the columns that a record holds, besides arrival and lengths
	open func(o Options, l *losses) (encoder, error)
}

// Formats lists the formats that a trace can be written in.
func Formats() []Format {
	return []Format{
		mooncakeFormat(), bailianFormat(), aiperfFormat(), vllmCustomFormat(), vllmTimedFormat(),
		sglangFormat(), guideLLMFormat(), inferencePerfFormat(), openAIBatchFormat(), blisFormat(),
	}
}

// A Prompter makes prompts where a format wants text. Prompt appends that of
// row to buf; package synth makes some with exactly the tokens of the row.
type Prompter interface {
	Prompt(row *trace.Request, buf []byte) ([]byte, error)
}

// Options hold what a trace file says of itself in addition to its rows, and
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
	// Loss says what the file does not tell of the rows written so far, a
	// sentence for each kind of loss with the number of rows concerned; nil
	// when it tells all.
	Loss() []string
	// Close writes what is buffered. It does not close the underlying writer.
	Close() error
}

// A usageError is an error in what was asked for, and matches [datasets.ErrUsage].
type usageError string

func (e usageError) Error() string        { return string(e) }
func (e usageError) Is(target error) bool { return target == datasets.ErrUsage }

func usage(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// NewWriter writes to w in the format of that name. Errors in what was asked
// for match [datasets.ErrUsage].
func NewWriter(name string, w io.Writer, o Options) (Writer, error) {
	outputs := Formats()
	i := slices.IndexFunc(outputs, func(out Format) bool { return out.Name == name })
	if i < 0 {
		names := make([]string, len(outputs))
		for i, out := range outputs {
			names[i] = out.Name
		}
		return nil, usage("unknown format to write: want one of %s", strings.Join(names, ", "))
	}
	out := outputs[i]
	switch {
	case o.BlockSize < 0:
		return nil, usage("the block size is negative")
	case out.NeedsBlocks && o.BlockSize == 0:
		return nil, fmt.Errorf("the trace has no block ids, which the format %s needs", name)
	case out.NeedsPrompts && o.Prompter == nil:
		return nil, usage("the format %s holds prompts: say what is to make them", name)
	case out.HeaderExt != "" && o.Header == nil:
		return nil, usage("the format %s has a second file, with the header: say where to write it", name)
	}
	f := &writer{w: bufio.NewWriter(w), losses: newLosses(out.says)}
	var err error
	if f.encode, err = out.open(o, f.losses); err != nil {
		return nil, err
	}
	_, err = f.w.WriteString(out.top)
	return f, err
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
		err := checkNumbers(r)
		if err == nil {
			f.buf, err = f.encode(f.buf[:0], f.losses.rows, r)
		}
		if err != nil {
			return i, fmt.Errorf("row %d %w", f.losses.rows, err)
		}
		if _, err := f.w.Write(f.buf); err != nil {
			return i, err
		}
		f.losses.add(r)
	}
	return len(rows), nil
}

func (f *writer) Loss() []string { return f.losses.lines() }

func (f *writer) Close() error { return f.w.Flush() }

var errNegative = errors.New("has a negative arrival or length, which no format can hold")

func checkNumbers(r *trace.Request) error {
	if r.ArrivalNS < 0 || r.InputTokens < 0 || r.OutputTokens < 0 {
		return errNegative
	}
	return nil
}
