package datasets

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"reprise/trace"
)

// ErrUsage matches, by errors.Is, the errors of [OpenFiles] and [ParseMapping] that lie
// in what was asked for rather than in the input.
var ErrUsage = errors.New("usage error")

type usageError string

func (e usageError) Error() string        { return string(e) }
func (e usageError) Is(target error) bool { return target == ErrUsage }

func usage(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// A fault says what is wrong with an input and where, without quoting it.
type fault struct {
	line, col int64
	reason    string
	err       error // sentinel
	stop      bool  // nothing can be read beyond it
}

func (f *fault) Error() string { return f.reason }

// bad is a fault of one record, which is skipped.
func bad(line, col int64, reason string) *fault { return &fault{line: line, col: col, reason: reason} }

// refuse is a fault that stops the reading.
func refuse(line, col int64, reason string) *fault {
	return &fault{line: line, col: col, reason: reason, stop: true}
}

// cutOff is the fault of an input that ends in the middle of a record.
func cutOff(line, col int64, what string) *fault {
	return &fault{line: line, col: col, reason: "unexpected end of file: " + what, err: io.ErrUnexpectedEOF, stop: true}
}

// broken passes on an error of the underlying reader with its place.
func broken(line, col int64, err error) *fault {
	return &fault{line: line, col: col, reason: err.Error(), err: err, stop: true}
}

func (f *fault) at(file string) *trace.SourceError {
	return &trace.SourceError{File: file, Line: f.line, Column: f.col, Reason: f.reason, Err: f.err}
}

// A BadError says that more records were bad than is tolerated.
type BadError struct {
	File      string
	Bad, Rows int64   // of the records so far
	MaxBad    float64 // the tolerated share
	First     []*trace.SourceError
}

// Error names the first places.
func (e *BadError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d records are bad, more than the tolerated %.3g %%:", e.File, e.Bad, e.Rows, 100*e.MaxBad)
	for _, f := range e.First[:min(3, len(e.First))] {
		b.WriteString("\n  " + f.Error())
	}
	if e.Bad > 3 {
		b.WriteString("\n  …")
	}
	return b.String()
}

// Unwrap returns the first places.
func (e *BadError) Unwrap() []error {
	errs := make([]error, len(e.First))
	for i, f := range e.First {
		errs[i] = f
	}
	return errs
}
